"""TapFinger's clusters, simulated side by side, as the environment that a team of agents learns in: a
:class:`ces_rl.envs.base.TeamVector`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ces_core.amounts.choice import Choice, no_choice
from ces_core.amounts.features import kinds_of, new_seen, observe
from ces_core.amounts.policy import lose
from ces_core.amounts.rules import RULES, decide
from ces_core.amounts.schema import MOST
from ces_core.amounts.settings import SLOTS, Setting
from ces_core.amounts.speeds import Speeds
from ces_core.amounts.state import State, Tasks, World, most_running, new_state, new_world
from ces_core.amounts.thrift import lengths
from ces_core.compiled.jit import compiled
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_sim.amounts import Outcome, begin, count, draw_tasks, going, outcome, place_chosen, slot_ends, walk

SIDE = MOST + 1
FIRST_SEED = 1_000_000
"""Seeds of worlds that are learned on begin here; those below are for measuring."""


class TapFingerVector:
    """Episodes of one setting: each is a world from its first slot until its last task is done.

    A reward comes when a slot goes by. ``shared`` of it is minus the number of unfinished tasks in the world for each
    cluster; the rest is minus what an agent itself has running, pending and queued, as in TapFinger. Both are
    multiplied by ``unit``.
    """

    def __init__(
        self, setting: Setting, table: Speeds, slots: int, seed: int, *, shared: float, unit: float, rule: str
    ) -> None:
        self.setting, self.slots = setting, slots
        self.world = new_world(setting, table)
        self._table, self._kinds, self._rule = lengths(table), kinds_of(setting), RULES[rule]
        self._shared, self._unit, self._seed, self._drawn = shared, unit, seed, 0
        self.agents = len(setting.capacity)
        self.state_of = new_state(self.world, slots, setting.tasks)
        self.tasks = draw_tasks(setting, np.arange(slots))
        self.choice = no_choice(slots, self.agents)
        self._used, self._unfinished = np.zeros((slots, 2)), np.zeros(slots)

    @property
    def running(self) -> BoolArray:
        return going(self.setting, self.state_of)

    @property
    def success(self) -> BoolArray:
        success: BoolArray = self.state_of.finished >= self.setting.tasks
        return success

    @property
    def mask(self) -> BoolArray:
        """(slots, agents) who has a task pending and room for it."""
        room = np.all(self.state_of.free >= self.world.least, axis=2)
        pending = np.any(self.state_of.pending >= 0, axis=2)
        return np.asarray(room & pending, dtype=np.bool_)

    @property
    def score(self) -> FloatArray:
        """(slots,) mean slots from arrival to end."""
        return self.outcome.mean

    @property
    def outcome(self) -> Outcome:
        """Of episodes that are over; of others, as if they ended now."""
        return outcome(self.world, self.tasks, self.state_of, self._used, self._unfinished)

    def reset(self, progress: float, group: int = 1) -> None:
        first = FIRST_SEED * (self._seed + 1) + self._drawn
        self._drawn += self.slots // group
        self.start(np.repeat(np.arange(first, first + self.slots // group), group))

    def start(self, seeds: IntArray) -> None:
        """Begins the worlds of these seeds (slots,)."""
        self.tasks = draw_tasks(self.setting, seeds)
        self._used[:] = self._unfinished[:] = 0.0
        for e in range(self.slots):
            begin(self.world, self.tasks, self.state_of, e)

    def observe(self, rows: IntArray) -> tuple[NDArray[Any], ...]:
        seen = new_seen(len(rows), self.agents, most_running(self.world))
        observe(self.world, self.tasks, self._kinds, self.state_of, rows, seen)
        return tuple(seen)

    def losers(self, rows: IntArray, chosen: IntArray, odds: FloatArray, chance: FloatArray) -> BoolArray:
        lost = np.zeros(chosen.shape, dtype=np.bool_)
        lose(self.world, self.state_of, rows, chosen, odds, chance, lost)
        return lost

    def advice(self, rows: IntArray) -> IntArray:
        """A slot, and CPUs * 17 + GPUs. An agent to which the rule gives no task waits, with any that it may choose."""
        _advise(self._rule, self.world, self._table, self.tasks, self.state_of, rows, self.choice)
        slot = self.choice.slot[rows]
        waits = slot < 0
        slot = np.where(waits, np.argmax(self.state_of.pending[rows] >= 0, axis=2), slot)
        amounts = self.choice.cpus[rows] * SIDE + self.choice.gpus[rows]
        return np.stack([slot, np.where(waits, 0, amounts)], axis=-1)

    def step(self, actions: IntArray) -> NDArray[np.float32]:
        places = self.mask & (actions[..., 2] == 0)
        self.choice.slot[:] = np.where(places, actions[..., 0], -1)
        self.choice.cpus[:], self.choice.gpus[:] = np.divmod(actions[..., 1], SIDE)
        rewards = np.zeros((self.slots, self.agents), dtype=np.float32)
        _step(
            self.world, self.tasks, self.state_of, self.choice, self._shared, self._unit,
            self._used, self._unfinished, rewards,
        )  # fmt: skip
        return rewards

    def state(self) -> list[int]:
        return [self._drawn]

    def restore(self, state: Sequence[int]) -> None:
        self._drawn = state[0]


@compiled
def _advise(
    rule: int, world: World, table: FloatArray, tasks: Tasks, state: State, rows: IntArray, choice: Choice
) -> None:
    chance = np.zeros((len(world.capacity), 2))
    for e in rows:
        decide(rule, world, table, tasks.kind[e], state, e, chance, choice)


@compiled
def _step(
    world: World, tasks: Tasks, state: State, choice: Choice, shared: float, unit: float,
    used: FloatArray, unfinished: FloatArray, rewards: NDArray[np.float32],
) -> None:  # fmt: skip
    agents = len(world.capacity)
    for e in range(len(state.time)):
        if state.finished[e] == tasks.arrival.shape[1] or not slot_ends(world, place_chosen(state, e, choice)):
            continue
        count(world, state, e, used, unfinished)
        everyone = (state.arrived[e] - state.finished[e]) / agents
        for agent in range(agents):
            own = state.runs[e, agent] + state.queued[e, agent]
            for slot in range(SLOTS):
                own += state.pending[e, agent, slot] >= 0
            rewards[e, agent] = -unit * (shared * everyone + (1.0 - shared) * own)
        walk(world, tasks, state, e)
