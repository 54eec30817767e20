"""What a policy sees of a world, as :mod:`ces_core.amounts.schema` names it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ces_core.amounts.schema import (
    AMOUNT_UNIT,
    CLUSTER_FEATURES,
    KINDS,
    LIMIT,
    PENDING_FEATURES,
    QUEUE_UNIT,
    RUNNING_FEATURES,
    TIME_UNIT,
)
from ces_core.amounts.settings import SLOTS, Setting
from ces_core.amounts.state import CPU, GPU, State, Tasks, World
from ces_core.compiled.jit import compiled, inner
from ces_core.model.topology import IntArray

Numbers = NDArray[np.float32]


class Seen(NamedTuple):
    """The inputs of a policy for B worlds, and at last what a critic alone may know."""

    clusters: Numbers
    pending: Numbers
    running: Numbers
    seen: Numbers
    usable: Numbers
    most: Numbers
    outlook: Numbers  # (B, 2) the share of the tasks that is still to come, and of those that are there


def kinds_of(setting: Setting) -> IntArray:
    """(kinds,) their places among :data:`ces_core.amounts.schema.KINDS`."""
    return np.array([KINDS.index(kind) for kind in setting.kinds])


def new_seen(worlds: int, agents: int, running: int) -> Seen:
    """Zeros; ``running``: most tasks that a cluster runs."""
    shapes = (
        (agents, len(CLUSTER_FEATURES)), (agents, SLOTS, len(PENDING_FEATURES)),
        (agents, running, len(RUNNING_FEATURES)), (agents, SLOTS, agents), (agents, SLOTS), (agents, 2), (2,),
    )  # fmt: skip
    return Seen(*(np.zeros((worlds, *shape), dtype=np.float32) for shape in shapes))


@compiled
def observe(world: World, tasks: Tasks, kinds: IntArray, state: State, rows: IntArray, seen: Seen) -> None:
    """Sets ``seen``, which holds zeros, to what policies see of the worlds ``rows`` (B,). ``kinds``: see
    :func:`kinds_of`."""
    count = tasks.arrival.shape[1]
    for b in range(len(rows)):
        e = rows[b]
        for agent in range(len(world.capacity)):
            _cluster(world, state, e, agent, seen, b)
            _pending(world, tasks, kinds, state, e, agent, seen, b)
            for i in range(state.runs[e, agent]):
                task = state.running[e, agent, i]
                seen.running[b, agent, i, 0] = state.amounts[e, task, CPU] / AMOUNT_UNIT
                seen.running[b, agent, i, 1] = state.amounts[e, task, GPU] / AMOUNT_UNIT
                seen.running[b, agent, i, 2] = min(state.ran[e, task] / TIME_UNIT, LIMIT)
                seen.running[b, agent, i, 3 + kinds[tasks.kind[e, task]]] = 1.0
        seen.outlook[b, 0] = 1.0 - state.arrived[e] / count
        seen.outlook[b, 1] = (state.arrived[e] - state.finished[e]) / count


@inner
def _cluster(world: World, state: State, e: int, agent: int, seen: Seen, b: int) -> None:
    for r in range(2):
        seen.clusters[b, agent, r] = state.free[e, agent, r] / AMOUNT_UNIT
        seen.clusters[b, agent, 3 + r] = world.capacity[agent, r] / AMOUNT_UNIT
        seen.most[b, agent, r] = min(state.free[e, agent, r], world.most[r])
    seen.clusters[b, agent, 2] = min(state.queued[e, agent] / QUEUE_UNIT, LIMIT)
    seen.clusters[b, agent, 5] = agent / max(len(world.capacity) - 1.0, 1.0)


@inner
def _pending(world: World, tasks: Tasks, kinds: IntArray, state: State, e: int, agent: int, seen: Seen, b: int) -> None:
    room = state.free[e, agent, CPU] >= world.least[CPU] and state.free[e, agent, GPU] >= world.least[GPU]
    for slot in range(SLOTS):
        task, features = state.pending[e, agent, slot], seen.pending[b, agent, slot]
        if task < 0:
            features[2] = 1.0
            continue
        features[0], features[1] = world.least[CPU] / AMOUNT_UNIT, world.least[GPU] / AMOUNT_UNIT
        features[3] = min((state.time[e] - tasks.arrival[e, task]) / TIME_UNIT, LIMIT)
        features[4 + kinds[tasks.kind[e, task]]] = 1.0
        seen.usable[b, agent, slot] = 1.0 if room else 0.0
        for other in range(len(world.capacity)):
            for i in range(SLOTS):
                if state.pending[e, other, i] == task:
                    seen.seen[b, agent, slot, other] = 1.0
