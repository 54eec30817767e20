"""Episodes of tasks that are sent to clusters of GPU hosts, side by side, each with a draw of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ces_core.gpus.clusters import DELAY, wanted
from ces_core.gpus.model import GpuNode, GpuTask
from ces_core.gpus.rewards import Reading, rewards
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_sim.gpus.episode import Episode
from ces_sim.gpus.scenarios import CLUSTER, HOSTS, Scenario, draw

CLUSTERS = HOSTS // CLUSTER
ACTIONS = CLUSTERS + 1
"""A cluster, or in the last place to wait."""
RESOURCES, ASKED = 4, 5
EARNS = ("after", "thought", "count")
"""The two readings of the paper's reward, and 1 for a placed task."""


class GpuVector:
    """See :class:`ces_rl.envs.base.VectorEnv`. Observations are what is free of each cluster, as shares (rows,
    clusters, resources), and what the task asks for, as shares of a mean cluster, with the share of the stream that is
    still to come (rows, 5).

    With ``masked`` only right actions are allowed; to wait is one of them wherever what is earned is the count.
    """

    def __init__(
        self, scenario: Scenario, trace: tuple[Sequence[GpuNode], Sequence[GpuTask]], slots: int, seed: int,
        *, earns: str, masked: bool,
    ) -> None:  # fmt: skip
        self._scenario, self._trace, self.slots = scenario, trace, slots
        self._earns, self._masked, self._seed, self._count = earns, masked, seed, 0
        self.episodes: list[Episode] = []

    @property
    def running(self) -> BoolArray:
        return np.array([not episode.over for episode in self.episodes], np.bool_)

    @property
    def mask(self) -> BoolArray:
        found = np.ones((self.slots, ACTIONS), np.bool_)
        if self._masked:
            for slot, episode in enumerate(self.episodes):
                if not episode.over:
                    found[slot] = self._allowed(episode)
        return found

    def _allowed(self, episode: Episode) -> BoolArray:
        there = episode.clusters.hosts(episode.task) >= 0
        return np.append(there, self._earns == "count" or not there.any())

    @property
    def success(self) -> BoolArray:
        return ~self.running

    @property
    def score(self) -> FloatArray:
        """(slots,) tasks placed."""
        return np.array([len(episode.placed) for episode in self.episodes], np.float64)

    def reset(self, progress: float, group: int = 1) -> None:
        """A draw for every ``group`` slots, by the seed, how often this was called, and which of them it is."""
        nodes, tasks = self._trace
        drawn = [
            draw(self._scenario, nodes, tasks, np.random.default_rng([self._seed, self._count, number]))
            for number in range(-(-self.slots // group))
        ]
        self._count += 1
        self.episodes = [Episode.of(drawn[slot // group]) for slot in range(self.slots)]

    def observe(self, rows: IntArray) -> tuple[NDArray[Any], ...]:
        free = np.zeros((len(rows), CLUSTERS, RESOURCES), np.float32)
        asked = np.zeros((len(rows), ASKED), np.float32)
        for row, slot in enumerate(rows):
            episode = self.episodes[slot]
            total = episode.clusters.total
            free[row] = episode.clusters.free() / total
            if not episode.over:
                asked[row, :RESOURCES] = wanted(episode.task) / total.mean(axis=0)
                asked[row, RESOURCES] = 1 - episode.at / len(episode.asked)
        return free, asked

    def step(self, actions: IntArray) -> NDArray[np.float32]:
        earned = np.zeros(self.slots, np.float32)
        for slot, episode in enumerate(self.episodes):
            if episode.over:
                continue
            before = len(episode.placed)
            reward = episode.step(DELAY if actions[slot] == CLUSTERS else int(actions[slot]))
            earned[slot] = len(episode.placed) - before if self._earns == "count" else reward[Reading(self._earns)]
        return earned

    def advice(self, rows: IntArray) -> IntArray:
        """The expert's: what the reward in thought values most."""
        found = [rewards(self.episodes[slot].clusters, self.episodes[slot].task, Reading.THOUGHT) for slot in rows]
        return np.array([each.argmax() for each in found], np.int64)

    def state(self) -> list[int]:
        return [self._count]

    def restore(self, state: Sequence[int]) -> None:
        self._count = state[0]
