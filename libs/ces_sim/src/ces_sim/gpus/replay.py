"""A growing load on one cluster, as FGD was measured: tasks come one after the other, and none leaves.

Weng et al., USENIX ATC 2023, and its public simulator: all tasks of a trace in random order, then more of them drawn
with replacement, until tasks have asked for ``load`` times the GPUs there are. What does not fit is turned away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ces_core.gpus.choice import Chooser
from ces_core.gpus.fragmentation import fragmented, fragments_of, typical
from ces_core.gpus.model import CARD, GpuNode, GpuTask, Models
from ces_core.gpus.scores import Policy


@dataclass(frozen=True)
class Arrival:
    """What holds after a task came. ``placed``: its node's place in the list, and its cards; None: turned away.
    ``arrived``, ``allocated``, ``idle`` and ``fragmented``: milli of all cards."""

    task: GpuTask
    placed: tuple[int, tuple[int, ...]] | None
    arrived: int
    allocated: int
    idle: int
    fragmented: float


def stream(tasks: Sequence[GpuTask], capacity: int, load: float, rng: np.random.Generator) -> list[GpuTask]:
    """All tasks shuffled; where they ask for less than ``load`` x ``capacity`` milli, more of them follow, else some
    are taken out. Raises ValueError where no task asks for a GPU."""
    asked, target = sum(task.total for task in tasks), load * capacity
    if not asked:
        raise ValueError("no task asks for a GPU")
    found = [tasks[place] for place in rng.permutation(len(tasks))]
    if asked > target:
        while asked > target:
            asked -= found.pop(int(rng.integers(len(found)))).total
        return found
    while True:
        more = tasks[int(rng.integers(len(tasks)))]
        if asked + more.milli > target:  # of one card: so does the public simulator
            return found
        asked += more.total
        found.append(more)


def replay(
    nodes: Sequence[GpuNode], trace: Sequence[GpuTask], policy: Policy, load: float, seed: int
) -> Iterator[Arrival]:
    """One arrival after the other. Same seed, same tasks and same order of nodes for every policy: equals are
    preferred in a random order, not in that of their names. Raises ValueError where no task asks for a GPU."""
    rng = np.random.default_rng(seed)
    capacity = CARD * sum(node.cards for node in nodes)
    tasks = stream(trace, capacity, load, rng)
    order = rng.permutation(len(nodes))
    models = Models()
    fleet = models.fleet([nodes[place] for place in order])
    usual = typical(models.asked(task) for task in trace)
    chooser = Chooser(policy, fleet, usual, rng)
    asked = {task: models.asked(task) for task in trace}
    arrived, allocated, lost = 0, 0, round(fragmented(fleet, usual) * usual.total)
    for task in tasks:
        arrived += task.total
        want = asked[task]
        placed = chooser.choose(want)
        if placed is not None:
            node, cards = placed
            lost -= fragments_of(fleet, node, usual)
            chooser.place(node, cards, want)
            lost += fragments_of(fleet, node, usual)
            allocated += task.total
            placed = int(order[node]), cards
        yield Arrival(task, placed, arrived, allocated, capacity - allocated, lost / usual.total)
