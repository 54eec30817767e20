"""Placement by chance.

``random`` is the thesis's yardstick (4.3.1): a node drawn evenly from all that the task may run on, whether or not it
has room there, and a bandwidth level drawn evenly from all levels. Most of its failures are nodes that were full, so
``random+fill`` draws only from nodes with room, and takes the common bandwidth step: what a placement by chance is
worth where nothing else is left to chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ces_core.problem import FloatArray, Problem
from ces_core.solvers.baselines.baseline import Baseline
from ces_core.solvers.baselines.sequential import BoolArray, Placement, View, place
from ces_core.solvers.baselines.steps import random_levels


@dataclass(frozen=True)
class RandomSettings:
    """``levels``: how many rates there are from minimum to maximum. The thesis does not give its number."""

    levels: int = 5

    def __post_init__(self) -> None:
        if isinstance(self.levels, bool) or not isinstance(self.levels, int) or self.levels < 2:
            raise ValueError(f"RandomSettings.levels must be a whole number from 2 up, not {self.levels!r}")


def anywhere(problem: Problem, rng: np.random.Generator) -> Placement:
    """One draw per task, over all nodes that it may run on."""

    def admit(view: View) -> BoolArray:
        drawn = np.zeros(len(view.chosen), dtype=np.bool_)
        allowed = np.flatnonzero(view.problem.allowed[view.task])
        if len(allowed):
            drawn[allowed[rng.integers(len(allowed))]] = True
        return drawn

    return place(problem, range(len(problem.tasks)), lambda view: np.zeros(len(view.chosen)), admit)


def where_it_fits(problem: Problem, rng: np.random.Generator) -> Placement:
    """One draw per task, over the nodes that have room for it."""

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
