"""What agents choose in one round: a pending slot and amounts each; which amounts may be chosen, and who gets a task
that several chose."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ces_core.amounts.state import CPU, GPU, State, World
from ces_core.compiled.jit import compiled
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray


class Choice(NamedTuple):
    """In E worlds of A clusters. ``slot``: -1 where an agent chooses no task. Amounts of 0 mean that the task waits."""

    slot: IntArray  # (E, A)
    cpus: IntArray  # (E, A)
    gpus: IntArray  # (E, A)


def no_choice(worlds: int, agents: int) -> Choice:
    """Nobody chooses anything."""
    return Choice(*(np.full((worlds, agents), value, dtype=np.int64) for value in (-1, 0, 0)))


@compiled
def may_place(world: World, state: State, e: int, agent: int) -> bool:
    """Whether an agent has a task pending and the least amounts free."""
    if state.free[e, agent, CPU] < world.least[CPU] or state.free[e, agent, GPU] < world.least[GPU]:
        return False
    return bool((state.pending[e, agent] >= 0).any())


@compiled
def taken(state: State, e: int, agent: int, task: int, choice: Choice) -> bool:
    """Whether another agent has chosen the task."""
    for other in range(len(choice.slot[e])):
        slot = choice.slot[e, other]
        if other != agent and slot >= 0 and state.pending[e, other, slot] == task:
            return True
    return False


@compiled
def allowed_amounts(world: World, state: State, e: int, agent: int, mask: BoolArray) -> None:
    """Sets ``mask`` (CPUs + 1, GPUs + 1): from the least amounts to what is free and may be given, and nothing at
    all."""
    mask[:] = False
    mask[0, 0] = True
    most_cpus = min(state.free[e, agent, CPU], world.most[CPU])
    most_gpus = min(state.free[e, agent, GPU], world.most[GPU])
    for cpus in range(world.least[CPU], most_cpus + 1):
        for gpus in range(world.least[GPU], most_gpus + 1):
            mask[cpus, gpus] = True


@compiled
def spare_places(world: World, free: IntArray) -> float:
    """How often the least amounts fit into ``free`` (2,)."""
    return float(min(free[CPU] / world.least[CPU], free[GPU] / world.least[GPU]))


@compiled
def lost_conflicts(
    world: World, state: State, e: int, slot: IntArray, odds: FloatArray, chance: FloatArray, lost: BoolArray
) -> None:
    """Sets ``lost`` (A,) for agents whose task goes to another that chose it in the same round.

    By Bayes' rule, a task goes to agent a with the odds p(a chooses it) * p(a): the first factor is ``odds`` (A,), the
    second a softmax, over those that chose it, of min over the resources of free / least (arXiv 2302.00571). The
    likeliest gets it; of equals the one with the larger ``chance`` (A,).
    """
    agents = len(slot)
    lost[:] = False
    for a in range(agents):
        if slot[a] < 0 or lost[a]:
            continue
        task = state.pending[e, a, slot[a]]
        winner, best = a, _claim(world, state, e, a, odds[a])
        for b in range(a + 1, agents):
            if slot[b] < 0 or state.pending[e, b, slot[b]] != task:
                continue
            claim = _claim(world, state, e, b, odds[b])
            if claim > best or (claim == best and chance[b] > chance[winner]):
                lost[winner] = True
                winner, best = b, claim
            else:
                lost[b] = True


@compiled
def _claim(world: World, state: State, e: int, agent: int, odds: float) -> float:
    """The logarithm of the odds, up to what all competitors share."""
    return math.log(max(odds, 1e-300)) + spare_places(world, state.free[e, agent])
