"""A rule of CES's own, ``thrifty``: what a learned policy is taught at first, and has to beat.

An agent weighs for each pending task and all amounts how long the task takes against how long it keeps others from the
cluster: slots * (1 + waiting * share), where ``waiting`` counts its other pending and queued tasks and ``share`` is
the larger share of the cluster's CPUs and GPUs. It takes the task that costs least, unless the same task would be done
sooner by waiting for more to become free.
"""

from __future__ import annotations

import numpy as np

from ces_core.amounts.choice import Choice, may_place, spare_places, taken
from ces_core.amounts.settings import SLOTS
from ces_core.amounts.speeds import Speeds, advance
from ces_core.amounts.state import CPU, GPU, State, World
from ces_core.compiled.jit import compiled
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray

LONGEST = 1000.0
"""Slots that a task takes which never ends."""
PATIENCE = 4.0
"""Slots that a task may wait for more to become free."""
WEIGHT = 1.0
"""How much others that wait count."""


def lengths(table: Speeds) -> FloatArray:
    """(kinds, CPUs + 1, GPUs + 1) slots that a task takes which begins with these amounts and keeps them."""
    found = np.full(table.steady.shape, LONGEST)
    for place in np.argwhere(table.steady + table.bending > 0.0):
        kind, cpus, gpus = place
        progress, slots = 0.0, 0
        while progress < 1.0 and slots < LONGEST:
            progress += advance(float(table.steady[kind, cpus, gpus]), float(table.bending[kind, cpus, gpus]), progress)
            slots += 1
        found[kind, cpus, gpus] = slots
    return found


@compiled
def thrifty(world: World, table: FloatArray, kinds: IntArray, state: State, e: int, choice: Choice) -> None:
    """Sets what the agents of world ``e`` choose: the one with most places free first, each of what is left."""
    agents = len(world.capacity)
    spare = np.empty(agents)
    for agent in range(agents):
        spare[agent] = -spare_places(world, state.free[e, agent])
    for agent in np.argsort(spare, kind="mergesort"):
        _choose(world, table, kinds, state, e, agent, choice)


@compiled
def _choose(world: World, table: FloatArray, kinds: IntArray, state: State, e: int, agent: int, choice: Choice) -> None:
    if not may_place(world, state, e, agent):
        return
    others = state.queued[e, agent] - 1.0
    for slot in range(SLOTS):
        others += state.pending[e, agent, slot] >= 0
    waiting = WEIGHT * max(others, 0.0)
    best = np.inf
    for slot in range(SLOTS):
        task = state.pending[e, agent, slot]
        if task < 0 or taken(state, e, agent, task, choice):
            continue
        cost, cpus, gpus = cheapest(world, table, kinds[task], agent, state.free[e, agent], waiting)
        ideal, _, _ = cheapest(world, table, kinds[task], agent, world.capacity[agent], waiting)
        if cost <= ideal + PATIENCE and cost < best:
            best = cost
            choice.slot[e, agent] = slot
            choice.cpus[e, agent], choice.gpus[e, agent] = cpus, gpus


@compiled
def cheapest(
    world: World, table: FloatArray, kind: int, agent: int, free: IntArray, waiting: float
) -> tuple[float, int, int]:
    """The least cost that amounts up to ``free`` (2,) have for a task of this kind, and these amounts; of equals the
    smallest."""
    cost, cpus, gpus = np.inf, 0, 0
    for c in range(world.least[CPU], min(free[CPU], world.most[CPU]) + 1):
        for g in range(world.least[GPU], min(free[GPU], world.most[GPU]) + 1):
            share = max(c / world.capacity[agent, CPU], g / world.capacity[agent, GPU])
            found = table[kind, c, g] * (1.0 + waiting * share)
            if found < cost - 1e-9:
                cost, cpus, gpus = found, c, g
    return cost, cpus, gpus
