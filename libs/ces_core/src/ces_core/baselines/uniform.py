"""Random placement.

``random`` is the thesis's yardstick (4.3.1): a node drawn uniformly from all allowed ones, whether or not the task fits
there, and a bandwidth level drawn uniformly. Most of its failures are full nodes. ``random+fill`` therefore draws only
from nodes that hold the task, and takes the common bandwidth step: it measures random placement alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ces_core.baselines.baseline import Baseline
from ces_core.baselines.rates import random_levels
from ces_core.baselines.sequential import Placement, View, place
from ces_core.model.problem import BoolArray, FloatArray, Problem


@dataclass(frozen=True)
class RandomSettings:
    """``levels``: the number of rates from minimum to maximum. The thesis does not state its number."""

    levels: int = 5

    def __post_init__(self) -> None:
        if isinstance(self.levels, bool) or not isinstance(self.levels, int) or self.levels < 2:
            raise ValueError(f"RandomSettings.levels must be a whole number from 2 up, not {self.levels!r}")


def anywhere(problem: Problem, rng: np.random.Generator) -> Placement:
    """One draw per task, over all allowed nodes."""

    def admit(view: View) -> BoolArray:
        drawn = np.zeros(len(view.chosen), dtype=np.bool_)
        allowed = np.flatnonzero(view.problem.allowed[view.task])
        if len(allowed):
            drawn[allowed[rng.integers(len(allowed))]] = True
        return drawn

    return place(problem, range(len(problem.tasks)), lambda view: np.zeros(len(view.chosen)), admit)


def where_it_fits(problem: Problem, rng: np.random.Generator) -> Placement:
    """One draw per task, over the nodes that hold it."""

    def score(view: View) -> FloatArray:
        return rng.random(len(view.chosen))

    return place(problem, range(len(problem.tasks)), score)


RANDOM = Baseline(
    "random",
    "a random node and a random bandwidth level",
    anywhere,
    random_levels(RandomSettings().levels),
)
RANDOM_FILL = Baseline("random+fill", "a random node with room", where_it_fits)
