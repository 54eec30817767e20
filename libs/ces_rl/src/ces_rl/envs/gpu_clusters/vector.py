"""Episodes of tasks that are sent to clusters of GPU hosts, side by side, each with a draw of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import compiled
from ces_core.gpus.clusters import Floats, sums
from ces_core.gpus.frugal import least_wasted, waits
from ces_core.gpus.model import CARD, Asked, Fleet, Integers, Models
from ces_core.gpus.rewards import TAU, WRONG, Reading, scaled
from ces_core.gpus.scores import card_fits, tightest_card
from ces_core.gpus.sight import Usual, View, amounts, look
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_sim.gpus.scenarios import CLUSTER, HOSTS, Drawn, Source

SIZES = {"clusters": CLUSTER, "hosts": 1}
"""What a task is sent to -> how many hosts it has."""
EARNS = ("after", "thought", "count")
"""The two readings of the paper's reward, and for a placed task its share of the stream."""
UNIT = -WRONG
"""In which the paper's reward is earned: what learns sees at most 1 a step."""


@compiled
def _place(fleet: Fleet, tasks: Integers, hosts: Integers) -> None:
    for stream in range(len(hosts)):
        host, row = hosts[stream], tasks[stream]
        if host < 0:
            continue
        task = Asked(row[0], row[1], row[2], row[3], row[4], row[5])
        fleet.cpu[host] -= task.cpu
        fleet.memory[host] -= task.memory
        more = task.gpus
        for each in range(fleet.cards[host]):
            card = tightest_card(fleet, host, task) if task.milli < CARD else each
            if more > 0 and card_fits(fleet, host, card, task):
                fleet.milli[host, card] -= task.milli
                fleet.card_memory[host, card] -= task.card_memory
                more -= 1


class GpuVector:
    """See :class:`ces_rl.envs.base.VectorEnv`. Observations are what ``view`` shows of clusters and of the task, and
    the mask. Actions are the ``count`` clusters of ``size`` hosts, and in the last place to wait. Each stream's
    clusters lie in one fleet, and all streams are looked at together."""

    def __init__(self, source: Source, slots: int, seed: int, *, earns: str, view: View, size: int = CLUSTER) -> None:
        self._source, self.slots, self._earns, self._view = source, slots, earns, view
        self._size, self.count = size, HOSTS // size
        self._seed, self._count, self._models = seed, 0, Models()
        self._usual = Usual.of(self._models.asked(task) for task in source.usual)
        self._places, self._length = np.arange(slots), source.scenario.tasks
        self.drawn: list[Drawn] = []
        self._mask = np.ones((slots, self.count + 1), np.bool_)
        self.placed, self.judged, self.wrong, self._at = np.zeros((4, slots), np.int64)

    @property
    def running(self) -> BoolArray:
        found: BoolArray = self._at < self._length
        return found

    @property
    def mask(self) -> BoolArray:
        return self._mask

    @property
    def success(self) -> BoolArray:
        return ~self.running

    @property
    def score(self) -> FloatArray:
        """(slots,) tasks placed."""
        return self.placed.astype(np.float64)

    def reset(self, progress: float, group: int = 1) -> None:
        """A draw for every ``group`` slots, by the seed, how often this was called, and which of them it is."""
        drawn = [
            self._source.draw(np.random.default_rng([self._seed, self._count, number]))
            for number in range(-(-self.slots // group))
        ]
        self._count += 1
        self.begin([drawn[slot // group] for slot in range(self.slots)])

    def begin(self, drawn: Sequence[Drawn]) -> None:
        """With these draws, one for each slot."""
        self.drawn, models = list(drawn), self._models
        streams = {id(each): [models.asked(task) for task in each.tasks] for each in self.drawn}
        self._tasks = np.array([streams[id(each)] for each in self.drawn], np.int64)
        self._fleet = models.fleet([node for each in self.drawn for node in each.nodes])
        self._total = sums(self._fleet, self._size).reshape(self.slots, self.count, -1)
        self.placed, self.judged, self.wrong, self._at = np.zeros((4, self.slots), np.int64)
        self._look()

    def _look(self) -> None:
        at = np.minimum(self._at, self._length - 1)
        self._asked = self._tasks[self._places, at]
        self._seen = look(self._fleet, self._size, self._total, self._asked, self._length - self._at - 1, self._usual)
        self._clusters, self._task, self._mask, self._order = self._view.shown(self._seen)
        over = ~self.running
        self._task[over], self._mask[over] = 0.0, True

    def observe(self, rows: IntArray) -> tuple[NDArray[Any], ...]:
        return self._clusters[rows], self._task[rows], self._mask[rows].astype(np.float32)

    def step(self, actions: IntArray) -> NDArray[np.float32]:
        running, hosts = self.running, self._seen.hosts
        waits = actions == self.count
        cluster = self._order[self._places, np.minimum(actions, self.count - 1)]
        host = np.where(waits, -1, hosts[self._places, cluster])
        placed = running & (host >= 0)
        rightly = running & waits & (hosts < 0).all(axis=1)
        if self._earns == "count":
            earned = placed / self._length
        else:
            rewards = self._rewards(Reading(self._earns))
            earned = rewards[self._places, np.where(waits, self.count, cluster)] / UNIT
        _place(self._fleet, self._asked, np.where(placed, host, -1))
        self.placed += placed
        self.judged += rightly
        self.wrong += running & ~placed & ~rightly
        self._at += running
        self._look()
        found: NDArray[np.float32] = np.where(running, earned, 0.0).astype(np.float32)
        return found

    def _rewards(self, reading: Reading) -> Floats:
        """(slots, actions): as :func:`ces_core.gpus.rewards.rewards` of each stream."""
        there = self._seen.hosts >= 0
        now = (1 - self._seen.free / self._total).mean(axis=2)
        after = now + (amounts(self._asked)[:, None] / self._total).mean(axis=2)
        if reading is Reading.THOUGHT:
            least = np.where(there, after, np.inf).min(axis=1, keepdims=True)
            most = np.where(there, after, -np.inf).max(axis=1, keepdims=True)
        else:
            others = np.where(np.eye(self.count, dtype=bool), after[:, :, None], now[:, None, :])
            least, most = others.min(axis=2), others.max(axis=2)
        some = there.any(axis=1)
        found = np.full((self.slots, self.count + 1), WRONG)
        # Without the others, whose extremes are infinite.
        value, least, most = (np.where(there, np.broadcast_to(each, there.shape), 0.0) for each in (after, least, most))
        found[:, :-1] = np.where(there, (scaled(value, least, most) - 1.0) * TAU, WRONG)
        found[~some, -1] = 0.0
        return found

    def advice(self, rows: IntArray) -> IntArray:
        """The expert's, what the reward in thought values most; where tasks are counted that of ``frugal``."""
        cluster, wait = least_wasted(self._seen), waits(self._seen)
        if self._earns != "count":
            cluster = self._rewards(Reading.THOUGHT)[:, :-1].argmax(axis=1)
            wait = np.all(self._seen.hosts < 0, axis=1)
        number = (self._order == cluster[:, None]).argmax(axis=1)
        found: IntArray = np.where(wait, self.count, number)[rows]
        return found

    def state(self) -> list[int]:
        return [self._count]

    def restore(self, state: Sequence[int]) -> None:
        self._count = state[0]
