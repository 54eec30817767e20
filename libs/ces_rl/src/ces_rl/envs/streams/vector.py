"""Streams side by side, each stopped at its next decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_rl.envs.streams.features import CONTEXT, DURATIONS, PLAN, room_value, seen
from ces_rl.envs.streams.lookahead import take
from ces_rl.envs.streams.proposals import Attitude, Proposals, propose
from ces_rl.envs.streams.stream import Scenario, Stream

Draw = Callable[[np.random.Generator], Scenario]
REWARD = 0.1
"""Rewards of a decision are told in this unit, so that what learns sees returns of about 1."""


class StreamVector:
    """See :class:`ces_rl.envs.base.VectorEnv`. An action is a plan, the last one is to wait. ``earns``: weights of what
    a start earns, see the environment's settings. Jobs without any plan wait unasked."""

    def __init__(
        self,
        draw: Draw,
        slots: int,
        seed: int,
        chosen: tuple[Attitude, ...],
        earns: dict[str, float],
        *,
        waits: bool,
        durations: bool,
    ) -> None:
        self._draw, self.slots, self._seed, self._count = draw, slots, seed, 0
        self._chosen, self._earns, self._waits, self._durations = chosen, earns, waits, durations
        self.actions = len(chosen) + 1
        self.streams: list[Stream] = []
        self.found: list[Proposals | None] = [None] * slots
        self._plans = np.zeros((slots, self.actions, len(PLAN)), np.float32)
        self._context = np.zeros((slots, len(CONTEXT) + durations * len(DURATIONS)), np.float32)
        self._mask = np.zeros((slots, self.actions), np.bool_)

    @property
    def running(self) -> BoolArray:
        return np.array([found is not None for found in self.found])

    @property
    def mask(self) -> BoolArray:
        return self._mask

    @property
    def success(self) -> BoolArray:
        return ~self.running

    @property
    def score(self) -> FloatArray:
        """(slots,) satisfaction of all jobs that came, 0 for those that never ran."""
        return np.array([stream.served / len(stream.kinds) for stream in self.streams])

    @property
    def accepted(self) -> FloatArray:
        """(slots,) share of the jobs that ran."""
        return np.array([len(stream.satisfaction) / len(stream.kinds) for stream in self.streams])

    def reset(self, progress: float, group: int = 1) -> None:
        """A scenario for every ``group`` slots, by the seed, how often this was called, and which of them it is."""
        drawn = [
            self._draw(np.random.default_rng([self._seed, self._count, number]))
            for number in range(-(-self.slots // group))
        ]
        self._count += 1
        self.begin([drawn[slot // group] for slot in range(self.slots)])

    def begin(self, scenarios: Sequence[Scenario]) -> None:
        """With these scenarios, one for each slot."""
        self.streams = [Stream(scenario) for scenario in scenarios]
        for slot in range(self.slots):
            self._look(slot)

    def _look(self, slot: int) -> None:
        """Goes on until some plan is there to be chosen."""
        stream = self.streams[slot]
        self.found[slot] = None
        self._mask[slot] = False
        while stream.job is not None:
            found = propose(stream.problem, self._chosen)
            if found.there.any():
                plans, context, allowed = seen(stream, found, durations=self._durations)
                allowed[-1] &= self._waits
                self._plans[slot], self._context[slot], self._mask[slot] = plans, context, allowed
                self.found[slot] = found
                return
            stream.wait()

    def observe(self, rows: IntArray) -> tuple[NDArray[Any], ...]:
        return self._plans[rows], self._context[rows], self._mask[rows].astype(np.float32)

    def step(self, actions: IntArray) -> NDArray[np.float32]:
        rewards = np.zeros(self.slots, np.float32)
        for slot, found in enumerate(self.found):
            if found is None:
                continue
            stream = self.streams[slot]
            before = self._worth(stream)
            take(stream, found, int(actions[slot]))
            self._look(slot)
            rewards[slot] = REWARD * (self._worth(stream) - before)
        return rewards

    def _worth(self, stream: Stream) -> float:
        """What the stream has earned so far; ``room`` counts what nodes have left at present."""
        earns, started = self._earns, len(stream.satisfaction)
        total = earns.get("accepted", 0.0) * started + earns.get("satisfied", 0.0) * stream.served
        if earns.get("work"):
            total += earns["work"] * stream.work_served
        total -= earns.get("waited", 0.0) * stream.waited_s / stream.scenario.patience_s
        if earns.get("room"):
            total += earns["room"] * room_value(stream.cluster)
        return total

    def state(self) -> list[int]:
        return [self._count]

    def restore(self, state: Sequence[int]) -> None:
        self._count = state[0]
