"""The rules that TapFinger is compared with, and one of CES's own, in one round of decisions.

``random`` and ``least`` draw a pending task; ``optimus`` (Peng et al., EuroSys 2018) and ``tiresias`` (Gu et al., NSDI
2019) take the first one and deal all amounts of their cluster afresh, those of running tasks included. They follow the
description and the public runs of arXiv 2302.00571, not the systems that they are named after.
"""

from __future__ import annotations

from ces_core.amounts.choice import Choice, may_place, taken
from ces_core.amounts.redistribution import deal_by_gain, deal_by_service
from ces_core.amounts.settings import SLOTS
from ces_core.amounts.state import CPU, GPU, State, World
from ces_core.amounts.thrift import thrifty
from ces_core.compiled.jit import compiled
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray

OPTIMUS, TIRESIAS, RANDOM, LEAST, THRIFTY = range(5)
RULES = {"optimus": OPTIMUS, "tiresias": TIRESIAS, "random": RANDOM, "least": LEAST, "thrifty": THRIFTY}
PUBLISHED = {"optimus": "Optimus", "tiresias": "Tiresias", "random": "Random", "least": "Min"}
"""Rule -> its name in TapFinger's figures."""


@compiled
def decide(
    rule: int, world: World, table: FloatArray, kinds: IntArray, state: State, e: int, chance: FloatArray,
    choice: Choice,
) -> None:  # fmt: skip
    """Sets what the agents of world ``e`` choose.

    ``table``: see :func:`ces_core.amounts.thrift.lengths`. ``kinds`` (N,): each task's kind. ``chance`` (A, 2):
    numbers between 0 and 1 that random rules decide by. No task is chosen twice. Optimus and Tiresias also change the
    amounts of running tasks, and what is free.
    """
    agents = len(world.capacity)
    for agent in range(agents):
        choice.slot[e, agent] = -1
        choice.cpus[e, agent] = choice.gpus[e, agent] = 0
    if rule == THRIFTY:
        thrifty(world, table, kinds, state, e, choice)
        return
    for agent in range(agents):
        if rule in (OPTIMUS, TIRESIAS):
            slot = first_untaken(world, state, e, agent, choice)
            choice.slot[e, agent] = slot
            if rule == OPTIMUS:
                deal_by_gain(world, kinds, state, e, agent, choice)
            else:
                deal_by_service(world, state, e, agent, choice)
        else:
            _by_chance(rule, world, state, e, agent, chance[agent], choice)


@compiled
def first_untaken(world: World, state: State, e: int, agent: int, choice: Choice) -> int:
    """The first pending slot whose task no earlier agent has chosen; -1 where there is none, or where as many tasks run
    as fit at the least amounts."""
    places = min(world.capacity[agent, CPU] // world.least[CPU], world.capacity[agent, GPU] // world.least[GPU])
    if state.runs[e, agent] >= places:
        return -1
    for slot in range(SLOTS):
        task = state.pending[e, agent, slot]
        if task >= 0 and not taken(state, e, agent, task, choice):
            return slot
    return -1


@compiled
def _by_chance(rule: int, world: World, state: State, e: int, agent: int, chance: FloatArray, choice: Choice) -> None:
    """Any pending task, and any amounts that may be chosen (waiting is one of them) or the least; an agent whose task
    an earlier one has chosen does nothing."""
    count = 0
    for slot in range(SLOTS):
        count += state.pending[e, agent, slot] >= 0
    if count == 0:
        return
    drawn = min(int(chance[0] * count), count - 1)
    for slot in range(SLOTS):
        if state.pending[e, agent, slot] < 0:
            continue
        if drawn == 0:
            break
        drawn -= 1
    if taken(state, e, agent, state.pending[e, agent, slot], choice):
        return
    choice.slot[e, agent] = slot
    if not may_place(world, state, e, agent):
        return  # and nobody after it gets the task in this round
    if rule == LEAST:
        choice.cpus[e, agent], choice.gpus[e, agent] = world.least[CPU], world.least[GPU]
        return
    rows = min(state.free[e, agent, CPU], world.most[CPU]) - world.least[CPU] + 1
    columns = min(state.free[e, agent, GPU], world.most[GPU]) - world.least[GPU] + 1
    cell = min(int(chance[1] * (rows * columns + 1)), rows * columns) - 1
    if cell >= 0:
        choice.cpus[e, agent] = world.least[CPU] + cell // columns
        choice.gpus[e, agent] = world.least[GPU] + cell % columns
