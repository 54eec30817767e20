"""A solver that puts tasks where it was last told to, if they fit there: what one scheduler likes, another need not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ces_core.baselines.baseline import Baseline
from ces_core.baselines.sequential import Placement, View, place
from ces_core.model.plan import Result
from ces_core.model.problem import FloatArray, Problem


class ObligingSolver:
    """``liked``: the nodes for the first task, the second and so on, in turn. A task that does not fit there goes to
    the next of them that is free, then to any node. Nothing is drawn at random."""

    name, summary = "obliging", "wherever it was told to"

    def __init__(self, liked: Sequence[str] = ()) -> None:
        self.liked = list(liked)
        self._solve = Baseline(self.name, self.summary, self._place).solve

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        return self._solve(problem)

    def _place(self, problem: Problem, rng: np.random.Generator) -> Placement:
        return place(problem, range(len(problem.tasks)), self._score)

    def _score(self, view: View) -> FloatArray:
        index = view.problem.cluster.topology.node_index
        scores = np.zeros(len(view.chosen))
        for rank in range(len(self.liked)):
            name = self.liked[(view.task + rank) % len(self.liked)]
            if name in index:
                scores[index[name]] = max(scores[index[name]], len(self.liked) - rank)
        return scores
