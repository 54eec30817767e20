"""A policy of amounts asked about real nodes, on which one resource makes jobs faster.

The policies know TapFinger's tasks, of which language tasks are as fast as their GPUs let them be, and have to have two
CPUs. So the resource that matters here is shown as GPUs, in units of a sixteenth of the most that a job may get, every
job as a language task, and CPUs as just what eight tasks on sixteen need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ces_core.amounts.features import Numbers, Seen, new_seen
from ces_core.amounts.policy import Ask
from ces_core.amounts.schema import AMOUNT_UNIT, KINDS, LIMIT, MOST, QUEUE_UNIT, TIME_UNIT
from ces_core.amounts.settings import LANGUAGE, SLOTS

FULL_SPEED_SLOTS = 2
"""Slots that a language task takes with all sixteen GPUs."""
CPUS = 2
"""Of a task."""
LARGEST = 2 * MOST
"""Units of a node: none was larger in training."""
_KIND = KINDS.index(LANGUAGE)


@dataclass(frozen=True)
class NodeUnits:
    """Whole units. ``running``: units and slots that each of its workers has had."""

    capacity: int
    free: int
    running: Sequence[tuple[float, float]] = ()

    @property
    def shown(self) -> tuple[int, int, int, int]:
        """Free CPUs and GPUs, and those that there are."""
        capacity = min(self.capacity, LARGEST)
        free = max(0, min(self.free, capacity))
        return max(0, capacity - CPUS * len(self.running)), free, capacity, capacity


def advised(ask: Ask, nodes: Sequence[NodeUnits], waited: Sequence[float]) -> list[int]:
    """How many units each of the first ``SLOTS`` jobs is to have, by the node that claims it most, of those that would
    not have it wait; 0: all would. ``waited``: slots, of all jobs that wait. As TapFinger resolves conflicts, a claim
    is what the policy gives to the job there, times the softmax of how often the least amounts fit there (arXiv
    2302.00571). Raises PolicyError."""
    count = min(len(waited), SLOTS)
    if not nodes or not count:
        return [0] * count
    seen = _seen(nodes, waited)
    tasks, amounts_of = ask(seen)
    usable = seen.usable[0] > 0
    places = np.array([min(cpus / CPUS, gpus) for cpus, gpus, _, _ in (node.shown for node in nodes)])
    claims = _log_softmax(tasks[0]) + places[:, None]
    found = []
    for slot in range(count):
        cells = amounts_of(np.full((1, len(nodes)), slot, dtype=np.int64))[0]
        amounts = np.where(usable[:, slot], np.argmax(cells, axis=-1) % (MOST + 1), 0)
        found.append(int(amounts[np.argmax(np.where(amounts > 0, claims[:, slot], -np.inf))]))
    return found


def _seen(nodes: Sequence[NodeUnits], waited: Sequence[float]) -> Seen:
    count = min(len(waited), SLOTS)
    seen = new_seen(1, len(nodes), max(1, *(len(node.running) for node in nodes)))
    for a, node in enumerate(nodes):
        cpus, gpus, capacity, _ = node.shown
        queued = min(max(0, len(waited) - SLOTS) / QUEUE_UNIT, LIMIT)
        amounts = [each / AMOUNT_UNIT for each in (cpus, gpus, 0, capacity, capacity)]
        seen.clusters[0, a] = [*amounts[:2], queued, *amounts[3:], a / max(len(nodes) - 1, 1)]
        seen.most[0, a] = min(cpus, MOST), min(gpus, MOST)
        for i, (units, ran) in enumerate(node.running):
            seen.running[0, a, i, :3] = CPUS / AMOUNT_UNIT, min(units, MOST) / AMOUNT_UNIT, min(ran / TIME_UNIT, LIMIT)
            seen.running[0, a, i, 3 + _KIND] = 1
        seen.usable[0, a, :count] = cpus >= CPUS and gpus >= 1
    pending = seen.pending[0]
    pending[:, count:, 2] = 1
    pending[:, :count, 0], pending[:, :count, 1] = CPUS / AMOUNT_UNIT, 1 / AMOUNT_UNIT
    pending[:, :count, 3] = [min(each / TIME_UNIT, LIMIT) for each in waited[:count]]
    pending[:, :count, 4 + _KIND] = 1
    seen.seen[0, :, :count] = 1
    return seen


def _log_softmax(logits: Numbers) -> Numbers:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    found: Numbers = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found
