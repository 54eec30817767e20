"""A game that a test plays by itself, and the scorer that knows nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ces_core.learned.episode import begin, new_episode, place, take_back
from ces_core.learned.features import CONTEXT_WIDTH, NODE_WIDTH, Observation, observe
from ces_core.learned.node_features import new_feature_scratch
from ces_core.model.generate import REGIMES
from ces_core.model.problem import Problem
from ces_core.placement.fill import fill_work
from ces_core.placement.state import new_state
from ces_core.placement.task_order import task_order
from ces_core.placement.view import problem_view


class Table:
    """One problem with everything that a game on it needs."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.view = problem_view(problem)
        self.state, self.work = new_state(self.view), fill_work(self.view)
        self.episode = new_episode(self.view, task_order(self.view))
        self.scratch = new_feature_scratch(*self.view.fits.shape, len(self.view.low))
        nodes = len(self.view.nodes)
        self.nodes = np.full((nodes, NODE_WIDTH), np.nan, dtype=np.float32)
        self.context = np.full(CONTEXT_WIDTH, np.nan, dtype=np.float32)
        self.mask = np.zeros(nodes, dtype=np.bool_)
        self.seen = Observation(self.nodes, self.context, self.mask)
        assert begin(self.view, self.state, self.episode)

    def observe(self) -> int:
        return observe(self.view, self.state, self.episode, self.scratch, self.seen)

    def place(self, node: int) -> bool:
        return place(self.view, self.state, self.episode, node)

    def take_back(self) -> None:
        take_back(self.view, self.state, self.episode)

    def done(self) -> bool:
        return int(self.episode.level[0]) == len(self.episode.order)


def instances(seeds: range) -> list[tuple[str, int]]:
    return [(regime, seed) for regime in REGIMES for seed in seeds]


def uniform_scores(
    nodes: NDArray[np.float32], context: NDArray[np.float32], mask: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """The same score for all nodes."""
    return np.zeros(mask.shape, dtype=np.float32)
