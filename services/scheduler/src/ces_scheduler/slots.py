"""The cluster as a number of slots of one kind, as the policy for malleable jobs counts it. Pure.

That policy knows equal slots only, where a cluster has nodes with several resources. Jobs compete for slots if the
same resource is scarce for them, by the share of the whole that they ask for; those whose scarce resource is another
one are taken to hold what they hold. One slot is what one worker takes of the job of which most workers fit; how many
fit is counted node by node. Where half as many fit of another job, a worker of it takes two slots; they are rounded up
for the whole job. Bandwidth does not count, nor does what tasks beside the elastic group need: whether there is a place
is for the solver to say.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ces_common.jobfile import Task
from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_scheduler.eligibility import kind_of, refusal
from ces_scheduler.offer import Floats, Offer

HOLDS_SIZE = frozenset({JobState.PLANNED, JobState.PREPARING, JobState.STARTING, JobState.RUNNING, JobState.RESIZING})
"""States in which a malleable job has a size that may change, now or soon."""
ROUNDING = 1e-9


def elastic_tasks(record: JobRecord, tasks: Iterable[Task]) -> list[Task]:
    """Which of a malleable job's tasks are of its elastic group."""
    assert record.spec is not None
    assert record.spec.elastic is not None
    elastic = record.spec.elastic
    return [task for task in tasks if elastic.includes(task.name)]


def asked_of(record: JobRecord) -> list[Task]:
    """The tasks that count: one worker of a malleable job, all tasks of a rigid one."""
    return record.tasks if record.size is None else elastic_tasks(record, record.tasks)[:1]


@dataclass(frozen=True, eq=False)
class Ground:
    """The nodes of an offer. ``with_absent``: nodes out of reach, or reclaimed by their owners, count as well, as if
    they were back."""

    offer: Offer
    with_absent: bool = False
    _allowed: dict[object, NDArray[np.bool_]] = field(default_factory=dict, init=False)  # each is worked out once

    @property
    def free(self) -> Floats:
        """(resources, nodes): what nobody holds."""
        return np.array(self.offer.cluster.node_free)

    def allowed(self, task: Task) -> NDArray[np.bool_]:
        """(nodes,): where the task may run."""
        key = kind_of(task)
        if key not in self._allowed:
            index = self.offer.cluster.topology.node_index
            found = np.zeros(len(index), dtype=bool)
            for name, node in self.offer.nodes.items():
                seen = node.model_copy(update={"state": "ready", "reclaimed": False}) if self.with_absent else node
                found[index[name]] = bool(node.cpu) and refusal(task, seen) is None
            self._allowed[key] = found
        return self._allowed[key]

    def scarce(self, record: JobRecord) -> int:
        """The resource of which the job's tasks ask for the largest share of the whole."""
        whole = np.maximum(self.offer.cluster.node_capacity.sum(axis=1), 1.0)
        needs = sum((_need(task) for task in asked_of(record)), np.zeros(3))
        return int(np.argmax(needs / whole))

    def held(self, record: JobRecord) -> Floats:
        """(resources, nodes): what the elastic group of a malleable job holds, of both sizes the larger one while that
        changes; all of a rigid one."""
        tasks = record.tasks if record.size is None else elastic_tasks(record, record.tasks)
        now = self._on_nodes(tasks, {each.task: each.node for each in record.allocations if not each.over})
        if record.resizing is None:
            return now
        places = {each.task: each.node for each in record.resizing.allocations}
        return np.maximum(now, self._on_nodes(elastic_tasks(record, record.resizing.tasks), places))

    def _on_nodes(self, tasks: Iterable[Task], places: Mapping[str, str]) -> Floats:
        index = self.offer.cluster.topology.node_index
        found = np.zeros_like(self.free)
        for task in tasks:
            node = index.get(places.get(task.name, ""))
            if node is not None:
                found[:, node] += _need(task)
        return found


@dataclass(frozen=True, eq=False)
class Pool:
    """Slots: ``capacity`` in all, of which ``booked`` are another's until the time given, in seconds."""

    ground: Ground
    amounts: Floats
    finest: float
    capacity: int
    booked: tuple[tuple[float, int], ...]

    @staticmethod
    def of(
        ground: Ground, members: Sequence[JobRecord], held: Sequence[Floats], leaving: Iterable[tuple[float, Floats]]
    ) -> Pool:
        """For these jobs. ``held``: what they have now; ``leaving``: when which other job ends, and what it holds."""
        amounts = ground.free + sum(held, np.zeros_like(ground.free))
        ends = sorted(leaving, key=lambda each: each[0])
        whole = amounts + sum((each for _, each in ends), np.zeros_like(amounts))
        shapes = [task for record in members for task in asked_of(record)]
        finest = max(shapes, key=lambda task: fitting(ground, whole, task), default=None)
        if finest is None:
            return Pool(ground, whole, 0.0, 0, ())
        booked = []
        before = fitting(ground, amounts, finest)
        for end, each in ends:
            amounts = amounts + each
            now = fitting(ground, amounts, finest)
            booked.append((end, now - before))
            before = now
        return Pool(ground, whole, float(before), before, tuple(each for each in booked if each[1]))

    def slots(self, record: JobRecord, size: int | None) -> int | None:
        """How many slots the job takes at a size, a rigid one at its own; None where a task of it fits nowhere."""
        share = 0.0
        for task in asked_of(record):
            fit = fitting(self.ground, self.amounts, task)
            if not fit:
                return None
            share += (size or 1) / fit
        return math.ceil(share * self.finest - ROUNDING)


def fitting(ground: Ground, amounts: Floats, task: Task) -> int:
    """How many such tasks fit, counted node by node."""
    need = _need(task)
    asked = need > 0
    each = np.floor(amounts[asked] / need[asked][:, None] + ROUNDING).min(axis=0)
    return int(np.maximum(each, 0.0)[ground.allowed(task)].sum())


def running_members(offer: Offer) -> Iterator[JobRecord]:
    """The malleable jobs that have a size now, in the order of their ids."""
    for name in sorted(offer.records):
        record = offer.records[name]
        if record.size is not None and record.state in HOLDS_SIZE:
            yield record


def _need(task: Task) -> Floats:
    return np.array([task.cpu, task.memory, task.gpus], dtype=np.float64)
