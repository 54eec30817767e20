"""The slotted world of :mod:`ces_core.amounts`: tasks arrive, agents choose in rounds until nobody places anything,
and a slot goes by (arXiv 2302.00571)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ces_core.amounts.choice import Choice, no_choice
from ces_core.amounts.features import kinds_of, new_seen, observe
from ces_core.amounts.policy import Ask, choose
from ces_core.amounts.rules import RULES, decide
from ces_core.amounts.settings import SLOTS, Setting
from ces_core.amounts.speeds import Speeds, advance
from ces_core.amounts.state import CPU, GPU, State, Tasks, World, most_running, new_state, new_world
from ces_core.amounts.thrift import lengths
from ces_core.compiled.jit import compiled
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray

PATIENCE, LONGEST_TASK = 10.0, 200.0
"""A world is given up after the first times the slots in which its tasks arrive, and the second: some task is never
placed."""


def draw_tasks(setting: Setting, seeds: IntArray) -> Tasks:
    """What arrives in one world for each seed: a Poisson number of tasks in every slot until all have arrived, of any
    kind with equal odds, each visible to 1 to A clusters, any number and any of them with equal odds."""
    drawn = [_drawn(setting, int(seed)) for seed in seeds]
    return Tasks(*(np.stack(column) for column in zip(*drawn, strict=True)))


def _drawn(setting: Setting, seed: int) -> tuple[IntArray, IntArray, BoolArray]:
    rng = np.random.default_rng([seed, 1])
    agents, tasks = len(setting.capacity), setting.tasks
    counts = rng.poisson(setting.arrivals, size=1)
    while counts.sum() < tasks:
        counts = np.append(counts, rng.poisson(setting.arrivals, size=tasks))
    arrival = np.repeat(np.arange(len(counts)), counts)[:tasks]
    kind = rng.integers(len(setting.kinds), size=tasks)
    seen = rng.integers(1, agents + 1, size=tasks)
    rank = rng.random((tasks, agents)).argsort(axis=1).argsort(axis=1)
    return arrival, kind, rank < seen[:, None]


@compiled
def begin(world: World, tasks: Tasks, state: State, e: int) -> None:
    """Puts world ``e`` at its first slot, with what arrives in it."""
    state.time[e] = state.arrived[e] = state.finished[e] = 0
    state.progress[e] = 0.0
    state.owner[e] = state.start[e] = -1
    state.duration[e] = state.service[e] = state.ran[e] = 0
    state.amounts[e] = 0
    state.before[e] = -1
    state.pending[e] = -1
    state.queued[e] = state.runs[e] = 0
    state.free[e] = world.capacity
    _arrive(tasks, state, e)


@compiled
def _arrive(tasks: Tasks, state: State, e: int) -> None:
    """A task goes to a free slot of each cluster that sees it, or else to the end of its queue."""
    total, agents = tasks.arrival.shape[1], state.pending.shape[1]
    while state.arrived[e] < total and tasks.arrival[e, state.arrived[e]] == state.time[e]:
        task = state.arrived[e]
        for agent in range(agents):
            if not tasks.visible[e, task, agent]:
                continue
            for slot in range(SLOTS):
                if state.pending[e, agent, slot] < 0:
                    state.pending[e, agent, slot] = task
                    break
            else:
                state.queue[e, agent, state.queued[e, agent]] = task
                state.queued[e, agent] += 1
        state.arrived[e] += 1


@compiled
def place(state: State, e: int, agent: int, slot: int, cpus: int, gpus: int) -> None:
    """The agent runs the task in this slot from now on; it is pending nowhere any more."""
    task = state.pending[e, agent, slot]
    state.running[e, agent, state.runs[e, agent]] = task
    state.runs[e, agent] += 1
    state.free[e, agent, CPU] -= cpus
    state.free[e, agent, GPU] -= gpus
    state.amounts[e, task, CPU], state.amounts[e, task, GPU] = cpus, gpus
    state.owner[e, task], state.start[e, task] = agent, state.time[e]
    for other in range(state.pending.shape[1]):
        found = False
        for i in range(SLOTS):
            if state.pending[e, other, i] == task:
                state.pending[e, other, i] = -1
                found = True
        if not found:
            _leave_queue(state, e, other, task)


@compiled
def _leave_queue(state: State, e: int, agent: int, task: int) -> None:
    last = state.queued[e, agent]
    for i in range(last):
        if state.queue[e, agent, i] == task:
            for j in range(i, last - 1):
                state.queue[e, agent, j] = state.queue[e, agent, j + 1]
            state.queued[e, agent] -= 1
            return


@compiled
def walk(world: World, tasks: Tasks, state: State, e: int) -> None:
    """A slot goes by: tasks progress, what is done leaves, new tasks arrive, and free slots are filled from the
    queues."""
    for agent in range(len(world.capacity)):
        kept = 0
        for i in range(state.runs[e, agent]):
            task = state.running[e, agent, i]
            _progress(world, tasks, state, e, task)
            if state.progress[e, task] >= 1.0:
                state.finished[e] += 1
                state.duration[e, task] = state.time[e] + 1 - tasks.arrival[e, task]
                state.free[e, agent] += state.amounts[e, task]
            else:
                state.running[e, agent, kept] = task
                kept += 1
        state.runs[e, agent] = kept
    state.time[e] += 1
    _arrive(tasks, state, e)
    for agent in range(len(world.capacity)):
        for slot in range(SLOTS):
            if state.pending[e, agent, slot] < 0 and state.queued[e, agent] > 0:
                task = state.queue[e, agent, 0]
                _leave_queue(state, e, agent, task)
                state.pending[e, agent, slot] = task


@compiled
def _progress(world: World, tasks: Tasks, state: State, e: int, task: int) -> None:
    kind, cpus, gpus = tasks.kind[e, task], state.amounts[e, task, CPU], state.amounts[e, task, GPU]
    gained = advance(world.steady[kind, cpus, gpus], world.bending[kind, cpus, gpus], state.progress[e, task])
    before = state.before[e, task]
    if before[CPU] >= 0 and (before[CPU] != cpus or before[GPU] != gpus):
        gained *= world.kept[0]
    state.progress[e, task] += gained
    state.before[e, task] = state.amounts[e, task]
    state.service[e, task] += gpus
    state.ran[e, task] += 1


@compiled
def place_chosen(state: State, e: int, choice: Choice) -> bool:
    """Places what was chosen in world ``e``. Returns whether that was anything."""
    placed = False
    for agent in range(len(choice.slot[e])):
        slot = choice.slot[e, agent]
        if slot >= 0 and choice.cpus[e, agent] + choice.gpus[e, agent] > 0:
            place(state, e, agent, slot, choice.cpus[e, agent], choice.gpus[e, agent])
            placed = True
    return placed


@compiled
def slot_ends(world: World, placed: bool) -> bool:
    """Whether a slot goes by after a round: nobody placed anything, or each may place one task in a slot."""
    return not placed or world.one_task[0]


@compiled
def count(world: World, state: State, e: int, used: FloatArray, unfinished: FloatArray) -> None:
    """Adds what is in use in world ``e``, and how many of its tasks are unfinished, to ``used`` (E, 2) and
    ``unfinished`` (E,)."""
    for agent in range(len(world.capacity)):
        for r in range(2):
            used[e, r] += world.capacity[agent, r] - state.free[e, agent, r]
    unfinished[e] += state.arrived[e] - state.finished[e]


@compiled
def _decide_all(
    rule: int, world: World, table: FloatArray, tasks: Tasks, state: State, chance: FloatArray, choice: Choice
) -> None:
    for e in range(len(state.time)):
        if state.finished[e] < tasks.arrival.shape[1]:
            decide(rule, world, table, tasks.kind[e], state, e, chance[e], choice)


@compiled
def _end_round(
    world: World, tasks: Tasks, state: State, choice: Choice, used: FloatArray, unfinished: FloatArray
) -> None:
    for e in range(len(state.time)):
        if state.finished[e] < tasks.arrival.shape[1] and slot_ends(world, place_chosen(state, e, choice)):
            count(world, state, e, used, unfinished)
            walk(world, tasks, state, e)


class Outcome(NamedTuple):
    """How E worlds went."""

    durations: IntArray  # (E, N) slots from arrival to end
    slots: IntArray  # (E,) until the last task was done
    used: FloatArray  # (E, 2) share of the CPUs and GPUs that was given away, over these slots
    unfinished: FloatArray  # (E,) mean number of tasks that had arrived and were not done

    @property
    def mean(self) -> FloatArray:
        """(E,) mean slots from a task's arrival to its end."""
        found: FloatArray = self.durations.mean(axis=1)
        return found


class Worlds:
    """One world for each seed, at its first slot. Worlds of equal seeds have equal tasks, whoever decides."""

    def __init__(self, setting: Setting, table: Speeds, seeds: IntArray, *, swapped: bool = True) -> None:
        self.setting, self.world = setting, new_world(setting, table, swapped=swapped)
        self.tasks = draw_tasks(setting, seeds)
        self.state = new_state(self.world, len(seeds), setting.tasks)
        self.choice = no_choice(len(seeds), len(self.world.capacity))
        self.used, self.unfinished = np.zeros((len(seeds), 2)), np.zeros(len(seeds))
        for e in range(len(seeds)):
            begin(self.world, self.tasks, self.state, e)

    @property
    def going(self) -> BoolArray:
        """(E,) which are not over."""
        return going(self.setting, self.state)

    def carry_out(self) -> None:
        """Ends the round: what was chosen is placed, and slots go by."""
        _end_round(self.world, self.tasks, self.state, self.choice, self.used, self.unfinished)

    @property
    def outcome(self) -> Outcome:
        """Of worlds that are over."""
        return outcome(self.world, self.tasks, self.state, self.used, self.unfinished)


def play(setting: Setting, table: Speeds, rule: str, seeds: IntArray, *, swapped: bool = True) -> Outcome:
    """Runs a rule of :mod:`ces_core.amounts.rules` to the end, in one world for each seed. ``swapped``: as for
    :func:`ces_core.amounts.speeds.fits`."""
    worlds = Worlds(setting, table, seeds, swapped=swapped)
    rng, ends = np.random.default_rng([*seeds, 2]), lengths(table)
    while worlds.going.any():
        chance = rng.random((len(seeds), len(worlds.world.capacity), 2))
        _decide_all(RULES[rule], worlds.world, ends, worlds.tasks, worlds.state, chance, worlds.choice)
        worlds.carry_out()
    return worlds.outcome


def play_policy(
    setting: Setting, table: Speeds, ask: Ask, seeds: IntArray, rng: np.random.Generator | None = None
) -> Outcome:
    """The same for a learned policy: always the likeliest task and amounts, or drawn ones where ``rng`` is given."""
    worlds, kinds = Worlds(setting, table, seeds), kinds_of(setting)
    world = worlds.world
    while (there := worlds.going).any():
        rows = np.flatnonzero(there)
        seen = new_seen(len(rows), len(world.capacity), most_running(world))
        observe(world, worlds.tasks, kinds, worlds.state, rows, seen)
        choose(ask, world, worlds.state, rows, seen, worlds.choice, rng)
        worlds.carry_out()
    return worlds.outcome


def going(setting: Setting, state: State) -> BoolArray:
    """(E,) which worlds have tasks that are not done, and are not given up."""
    limit = PATIENCE * setting.tasks / setting.arrivals + LONGEST_TASK
    found: BoolArray = (state.finished < setting.tasks) & (state.time < limit)
    return found


def outcome(world: World, tasks: Tasks, state: State, used: FloatArray, unfinished: FloatArray) -> Outcome:
    """Of worlds that are over, with the sums over their slots. In one that was given up, tasks last until then."""
    durations = np.where(state.duration > 0, state.duration, state.time[:, None] - tasks.arrival)
    slots = np.maximum(state.time, 1)
    shares = used / slots[:, None] / world.capacity.sum(axis=0)
    return Outcome(durations, state.time.copy(), shares, unfinished / slots)
