"""A game that a test plays by itself."""

from __future__ import annotations

import numpy as np

from ces_core.generate import REGIMES
from ces_core.kernels.compact import compact
from ces_core.kernels.fill import fill_work
from ces_core.kernels.order import task_order
from ces_core.kernels.state import new_state
from ces_core.policy.episode import begin, new_episode, place, take_back
from ces_core.policy.features import CONTEXT_WIDTH, NODE_WIDTH, observe
from ces_core.policy.judging import new_sight
from ces_core.problem import Problem


class Table:
    """One problem with everything that a game on it needs."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.view = compact(problem)
        self.state, self.work = new_state(self.view), fill_work(self.view)
        self.episode = new_episode(self.view, task_order(self.view))
        self.sight = new_sight(*self.view.fits.shape, len(self.view.low))
        nodes = len(self.view.nodes)
        self.nodes = np.full((nodes, NODE_WIDTH), np.nan, dtype=np.float32)
        self.context = np.full(CONTEXT_WIDTH, np.nan, dtype=np.float32)
        self.mask = np.zeros(nodes, dtype=np.bool_)
        assert begin(self.view, self.state, self.episode)

    def observe(self) -> int:
        return observe(self.view, self.state, self.episode, self.sight, self.nodes, self.context, self.mask)

    def place(self, node: int) -> bool:
        return place(self.view, self.state, self.episode, node)

    def take_back(self) -> None:
        take_back(self.view, self.state, self.episode)

    def done(self) -> bool:
        return int(self.episode.level[0]) == len(self.episode.order)


def instances(seeds: range) -> list[tuple[str, int]]:
    return [(regime, seed) for regime in REGIMES for seed in seeds]
