"""How much of what is free on GPUs is of no use to tasks as they usually come: the measure of FGD.

Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC
2023. All counts are whole numbers: equal states have equal measures, without rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ces_core.compiled.jit import compiled, inner
from ces_core.gpus.model import Asked, Fleet, Integers

USUAL_SHARE = 0.95
"""Of all tasks, those of the typical ones; the paper's experiments use it."""


class Typical(NamedTuple):
    """Kinds of tasks; ``weight``: how many there were of each, shape (kinds,) as all others; ``total``: their sum."""

    cpu: Integers
    gpus: Integers
    milli: Integers
    models: Integers
    weight: Integers
    total: int


def typical(tasks: Iterable[Asked], share: float = USUAL_SHARE) -> Typical:
    """The most frequent kinds that together make up ``share`` of the tasks; of equally frequent ones the larger first.
    Memory does not tell kinds apart. Raises ValueError where there are no tasks."""
    counts = Counter((task.cpu, task.milli, task.gpus, task.models) for task in tasks)
    if not counts:
        raise ValueError("no tasks: none of them are typical")
    wanted, kept, total = share * counts.total(), [], 0
    for kind, count in sorted(counts.items(), key=lambda found: (found[1], found[0]), reverse=True):
        if total >= wanted:
            break
        kept.append((*kind, count))
        total += count
    cpu, milli, gpus, models, weight = np.array(kept, np.int64).T
    return Typical(cpu.copy(), gpus.copy(), milli.copy(), models.copy(), weight.copy(), total)


@inner
def fragments(cpu: int, left: Integers, model: int, usual: Typical) -> int:
    """Of a node with ``left`` milli on each card: the sum over typical tasks of the milli that one cannot use.

    A task that cannot run there, or needs no GPU, uses none of them; another one all but cards with less than it asks.
    """
    idle = 0
    for card in range(len(left)):
        idle += left[card]
    lost = 0
    if idle == 0:
        return lost
    for i in range(len(usual.weight)):
        milli, gpus = usual.milli[i], usual.gpus[i]
        useless = idle
        if gpus > 0 and usual.cpu[i] <= cpu and (usual.models[i] == 0 or usual.models[i] & model):
            scattered = 0
            for card in range(len(left)):
                if left[card] < milli:
                    scattered += left[card]
                else:
                    gpus -= 1
            if gpus <= 0:
                useless = scattered
        lost += usual.weight[i] * useless
    return lost


@compiled
def _of_nodes(fleet: Fleet, usual: Typical, out: Integers) -> None:
    for node in range(len(out)):
        out[node] = fragments(fleet.cpu[node], fleet.milli[node], fleet.model[node], usual)


@compiled
def _of_node(fleet: Fleet, node: int, usual: Typical) -> int:
    return fragments(fleet.cpu[node], fleet.milli[node], fleet.model[node], usual)


def fragmented(fleet: Fleet, usual: Typical) -> float:
    """Milli of all nodes that a typical task cannot use, on average."""
    found = np.empty(len(fleet.cpu), np.int64)
    _of_nodes(fleet, usual, found)
    return int(found.sum()) / usual.total


def fragments_of(fleet: Fleet, node: int, usual: Typical) -> int:
    """The same of one node, times ``usual.total``."""
    return int(_of_node(fleet, node, usual))
