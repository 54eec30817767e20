"""Edge clusters and their tasks as flat arrays, any number of worlds of one setting side by side.

Numbers of tasks count from 0 within a world; -1 stands for none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ces_core.amounts.settings import SLOTS, Setting
from ces_core.amounts.speeds import Speeds, fits
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray

CPU, GPU = 0, 1


class World(NamedTuple):
    """What does not change: A clusters, K kinds of tasks."""

    capacity: IntArray  # (A, 2) CPUs and GPUs
    most: IntArray  # (2,) that one task may get
    least: IntArray  # (2,) that it must get
    steady: FloatArray  # (K, CPUs + 1, GPUs + 1): see Speeds
    bending: FloatArray  # likewise
    fit: FloatArray  # (K, 5) what Optimus believes
    kept: FloatArray  # (1,) factor on the progress of a slot that begins with changed amounts
    elastic: BoolArray  # (1,) whether Tiresias gives more than the least GPUs
    one_task: BoolArray  # (1,) whether an agent places at most one task in a slot


class Tasks(NamedTuple):
    """What is to arrive in E worlds: N tasks each, by the slot of their arrival."""

    arrival: IntArray  # (E, N) slots
    kind: IntArray  # (E, N)
    visible: BoolArray  # (E, N, A) which clusters may run it


class State(NamedTuple):
    """What changes in E worlds of A clusters, of which one runs at most R tasks."""

    time: IntArray  # (E,) slots since the beginning
    arrived: IntArray  # (E,) tasks
    finished: IntArray  # (E,) tasks
    progress: FloatArray  # (E, N) 0..1
    owner: IntArray  # (E, N) the cluster that runs or ran it
    start: IntArray  # (E, N) slot in which it was placed
    duration: IntArray  # (E, N) slots from arrival to end, 0 before that
    amounts: IntArray  # (E, N, 2) what it has
    before: IntArray  # (E, N, 2) what it had in the slot before, -1 where it did not run
    service: IntArray  # (E, N) GPU-slots that it has had
    ran: IntArray  # (E, N) slots
    pending: IntArray  # (E, A, SLOTS) tasks that may be placed
    queue: IntArray  # (E, A, N) tasks that wait for such a slot, the first first
    queued: IntArray  # (E, A) length of it
    running: IntArray  # (E, A, R) tasks, the first first
    runs: IntArray  # (E, A) length of it
    free: IntArray  # (E, A, 2) CPUs and GPUs


def new_world(setting: Setting, table: Speeds, *, swapped: bool = True) -> World:
    """The world of a setting; ``swapped`` as for :func:`ces_core.amounts.speeds.fits`."""
    return World(
        np.array(setting.capacity),
        np.array(setting.most),
        np.array(setting.least),
        table.steady,
        table.bending,
        fits(table, swapped=swapped),
        np.array([setting.kept]),
        np.array([setting.elastic]),
        np.array([setting.one_task]),
    )


def most_running(world: World) -> int:
    """How many tasks the largest cluster runs at once, at the least amounts."""
    return int((world.capacity // world.least).min(axis=1).max())


def new_state(world: World, worlds: int, tasks: int) -> State:
    """Nothing has arrived, and everything is free."""
    agents = len(world.capacity)

    def whole(*shape: int, value: int = 0) -> IntArray:
        return np.full(shape, value, dtype=np.int64)

    each = (worlds, tasks)
    return State(
        time=whole(worlds),
        arrived=whole(worlds),
        finished=whole(worlds),
        progress=np.zeros(each),
        owner=whole(*each, value=-1),
        start=whole(*each, value=-1),
        duration=whole(*each),
        amounts=whole(*each, 2),
        before=whole(*each, 2, value=-1),
        service=whole(*each),
        ran=whole(*each),
        pending=whole(worlds, agents, SLOTS, value=-1),
        queue=whole(worlds, agents, tasks, value=-1),
        queued=whole(worlds, agents),
        running=whole(worlds, agents, most_running(world), value=-1),
        runs=whole(worlds, agents),
        free=np.repeat(world.capacity[None], worlds, axis=0),
    )
