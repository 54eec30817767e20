"""With how much CPU jobs begin whose amount CES chooses, and for how long they wait for it. Pure but for the policy,
with a memory."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Final, Literal

import numpy as np
import structlog

from ces_common.jobfile import Task
from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_core.amounts.policy import SHIPPED, Ask, load_amounts_policy
from ces_core.amounts.schema import MOST
from ces_core.amounts.single import FULL_SPEED_SLOTS, NodeUnits, advised
from ces_core.model.errors import PolicyError, ProblemError
from ces_core.queue.parameters import Parameters
from ces_core.queue.shares import capacity_of
from ces_scheduler.cpu_levels import STEP
from ces_scheduler.eligibility import kind_of
from ces_scheduler.offer import Floats, Offer
from ces_scheduler.start_cpu import asked_cpu, at_cpu, cpu_level, cpu_range, is_elastic, worker_of

log = structlog.get_logger()
Rule = Literal["even", "patient", "tapfinger"]
EVEN: Final = "even"
USUAL: Final = "patient"
"""The best in the mean, as measured (docs/benchmarks/cpu.md)."""
PATIENCE: Final = 2.0
"""A job waits for more than it asks for this many times as long at most as it would take longer with that."""
POLICY: Final = "hetero_6"
"""The policy that is asked: the one that was trained with clusters of different sizes."""
NODES_SHOWN: Final = 64
"""To the policy, at most: what it is given grows with their square."""
KEPT: Final = 10_000
"""Jobs that could never begin with more, of which that is remembered."""
CPU = 0  # the row of node amounts


@dataclass(frozen=True)
class _Open:
    """A waiting job whose amount is to be chosen. ``most``: what each worker may begin with, as far as nodes and its
    tenant's quota have so much; more than it asks for."""

    record: JobRecord
    asked: int
    most: int

    @property
    def alone_s(self) -> float:
        """How long it takes with its most."""
        assert self.record.expected_s is not None
        return self.record.expected_s * self.asked / self.most

    @property
    def patience_s(self) -> float:
        """For how long after its submission it waits for more than it asks for."""
        assert self.record.expected_s is not None
        return PATIENCE * (self.record.expected_s - self.alone_s)


def policy_of(rule: Rule) -> Ask | None:
    """The policy that the rule asks. Where it cannot be used, the rule is the patient one."""
    if rule != "tapfinger":
        return None
    try:
        return load_amounts_policy(SHIPPED[POLICY])
    except PolicyError as error:
        log.error("the policy of amounts is refused", deciding="patient", reason=str(error))
        return None


class StartAmounts:
    """Gives the very same records, in the same list, while neither they nor their amounts change."""

    def __init__(self, rule: Rule, parameters: Parameters) -> None:
        self._rule, self._parameters = rule, parameters
        self._policy = policy_of(rule)
        self._asked: tuple[list[JobRecord], Offer] | None = None
        self._jobs: dict[str, tuple[int, float]] = {}  # job -> the amount that it waits for, and until when
        self._hopeless: dict[str, int] = {}  # job -> the attempt that could never begin with more, on this ground
        self._ground: Offer | None = None
        self._found: list[JobRecord] = []
        self._given: dict[str, tuple[JobRecord, int, JobRecord]] = {}  # job -> its record, the amount, that with it

    @property
    def _chooses(self) -> bool:
        return self._rule != EVEN and self._parameters.preemption is None

    def of(self, waiting: list[JobRecord], offer: Offer, now: datetime) -> tuple[list[JobRecord], float]:
        """The waiting jobs, each with the CPU with which it is to begin, and after how many seconds one of them has
        waited long enough for more than it asks for."""
        if not self._chooses:
            return waiting, math.inf
        now_s = now.timestamp()
        if self._ground is None or not offer.same_ground(self._ground):
            self._hopeless, self._ground = {}, offer
        if self._asked is None or self._asked[0] is not waiting or self._asked[1] is not offer:
            self._jobs, self._asked = self._chosen(waiting, offer, now_s), (waiting, offer)
        patient = {name: cpu for name, (cpu, until_s) in self._jobs.items() if now_s < until_s}
        due_s = min((self._jobs[name][1] for name in patient), default=math.inf)
        self._found = self._with(waiting, patient)
        return self._found, due_s - now_s

    def as_given(self, waiting: Sequence[JobRecord]) -> list[JobRecord]:
        """The waiting jobs, each with the CPU that it was last given to begin with."""
        known = (self._given.get(record.id) for record in waiting)
        return [
            record if each is None or each[0] is not record else each[2]
            for record, each in zip(waiting, known, strict=True)
        ]

    def alone(self, record: JobRecord, offer: Offer) -> JobRecord:
        """A job that was submitted just now and waits with no others, with the CPU with which it is to begin."""
        now_s = record.submitted_at.timestamp()
        found = self._chosen([record], offer, now_s) if self._chooses else {}
        cpu, until_s = found.get(record.id, (0, now_s))
        return at_cpu(record, cpu) if now_s < until_s else record

    def give_up(self, hopeless: Collection[str]) -> bool:
        """These never get a place as they are: they wait for no more than they ask for, until there are other nodes or
        links. Whether that is news."""
        news = {name: record.attempt for name, (record, _, _) in self._given.items() if name in hopeless}
        self._hopeless |= news
        for name in list(self._hopeless)[:-KEPT]:
            del self._hopeless[name]
        if news:
            self._asked = None
        return bool(news)

    def _chosen(self, waiting: Sequence[JobRecord], offer: Offer, now_s: float) -> dict[str, tuple[int, float]]:
        elastic = [each for each in waiting if cpu_range(each) is not None]
        if not elastic:
            return {}
        places = _Places(offer)
        able = [each for each in elastic if self._hopeless.get(each.id) != each.attempt]
        jobs = [job for record in able if (job := self._open(record, places)) is not None]
        amounts = {job.record.id: job.most for job in jobs}
        if self._policy is not None and jobs:
            try:
                amounts |= advice(self._policy, jobs, offer, now_s)
            except PolicyError as error:
                log.warning("amounts were chosen without the policy", reason=str(error))
        found = {}
        for job in jobs:
            name, submitted_s = job.record.id, job.record.submitted_at.timestamp()
            found[name] = amounts[name], submitted_s + min(job.patience_s, self._parameters.overdue_s)
        return found

    def _open(self, record: JobRecord, places: _Places) -> _Open | None:
        """None where it begins with what it asks for: only of a job of one size that says how long it takes, and has no
        deadline, is it known what waiting for more is worth."""
        limits = cpu_range(record)
        if limits is None or record.state is not JobState.QUEUED or record.size is None or record.spec is None:
            return None
        elastic, asked = record.spec.elastic, asked_cpu(record)
        if elastic is None or len(elastic.allowed) > 1 or not record.expected_s or record.deadline_at is not None:
            return None
        most = min(limits.max, self._quota(record, places.offer) // record.size)
        most = places.most_each(record.size, worker_of(record), asked, most)
        return _Open(record, asked, most) if most > asked else None

    def _quota(self, record: JobRecord, offer: Offer) -> int:
        """Millicores that its tenant may hold, less what the job's other tasks need."""
        try:
            share = self._parameters.tenant(record.tenant).quota.get("cpu", 1.0)
        except ProblemError:  # the queue file does not know its tenant: why it waits is said elsewhere
            return 0
        others = sum(task.cpu for task in record.tasks) - worker_of(record).cpu * (record.size or 0)
        return int(share * float(capacity_of(offer.cluster)[CPU])) - others

    def _with(self, waiting: list[JobRecord], amounts: Mapping[str, int]) -> list[JobRecord]:
        before, self._given = self._given, {}
        found = []
        for record in waiting:
            cpu = amounts.get(record.id)
            if cpu is None:
                found.append(record)
                continue
            known = before.get(record.id)
            if known is None or known[0] is not record or known[1] != cpu:
                known = record, cpu, at_cpu(record, cpu)
            self._given[record.id] = known
            found.append(known[2])
        if not self._given:
            return waiting
        same = len(found) == len(self._found) and all(a is b for a, b in zip(found, self._found, strict=True))
        return self._found if same else found


class _Places:
    """Nodes that take new work, as they are empty. ``offer``: of which they are."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self._names = _open_nodes(offer)
        index = offer.cluster.topology.node_index
        self._capacity = offer.cluster.node_capacity[:, [index[name] for name in self._names]]
        self._rooms: dict[object, Floats] = {}  # tasks that may run on the same nodes and need as much beside CPU
        self._known: dict[object, int] = {}

    def most_each(self, workers: int, task: Task, asked: int, most: int) -> int:
        """See :func:`most_each`, for workers like this task."""
        alike = *kind_of(task), task.memory, task.gpus
        if alike not in self._rooms:
            self._rooms[alike] = self._of(task)
        key = workers, alike, asked, most
        if key not in self._known:
            self._known[key] = most_each(workers, self._rooms[alike], asked, most)
        return self._known[key]

    def _of(self, task: Task) -> Floats:
        """(2, N) of the nodes where the task may run: their CPU, and how many such tasks their memory and GPUs let
        run there."""
        barred = self.offer.barred(task)
        capacity = self._capacity[:, [name not in barred for name in self._names]]
        room = np.full(capacity.shape[1], np.inf)
        for row, amount in ((1, task.memory), (2, task.gpus)):
            if amount:
                room = np.minimum(room, capacity[row] // amount)
        found: Floats = np.stack([capacity[CPU], room])
        return found


def most_each(workers: int, places: Floats, asked: int, most: int) -> int:
    """The most that each of ``workers`` workers can have on empty nodes at once, in steps from what they ask for up to
    ``most``. ``places``: see _Places._of."""
    low, high = 0, max(0, -(-(most - asked) // STEP))
    while low < high:
        steps = (low + high + 1) // 2
        if np.minimum(places[0] // min(most, asked + steps * STEP), places[1]).sum() >= workers:
            low = steps
        else:
            high = steps - 1
    return min(most, asked + low * STEP) if low else asked


def advice(policy: Ask, jobs: Sequence[_Open], offer: Offer, now_s: float) -> dict[str, int]:
    """What the policy gives to the first jobs, the most urgent and of these the shortest first; where it has one wait,
    that waits for its most. Raises PolicyError."""
    shown = sorted(jobs, key=lambda job: (-job.record.priority, job.alone_s, job.record.id))
    unit = max(job.most for job in shown) / MOST
    slot_s = max(median(job.alone_s for job in shown) / FULL_SPEED_SLOTS, 1e-3)
    waited = [(now_s - job.record.submitted_at.timestamp()) / slot_s for job in shown]
    found = {}
    for job, units in zip(shown, advised(policy, _nodes(offer, unit, slot_s, now_s), waited), strict=False):
        limits = cpu_range(job.record)
        assert limits is not None
        found[job.record.id] = max(limits.min, min(round(units * unit), job.most)) if units else job.most
    return found


def _nodes(offer: Offer, unit: float, slot_s: float, now_s: float) -> list[NodeUnits]:
    """Those that take new work; where there are many, those with most CPU free."""
    running: dict[str, list[tuple[float, float]]] = {}
    for record in offer.records.values():
        if cpu_range(record) is None or record.started_at is None:
            continue
        level, ran = cpu_level(record) / unit, max(0.0, now_s - record.started_at.timestamp()) / slot_s
        for each in record.allocations:
            if not each.over and is_elastic(record, each.task):
                running.setdefault(each.node, []).append((level, ran))
    index, cluster = offer.cluster.topology.node_index, offer.cluster
    free = {name: float(cluster.node_free[CPU, index[name]]) for name in _open_nodes(offer)}
    shown = sorted(sorted(free, key=lambda name: (-free[name], name))[:NODES_SHOWN])
    return [
        NodeUnits(int(cluster.node_capacity[CPU, index[name]] / unit), int(free[name] / unit), running.get(name, ()))
        for name in shown
    ]


def _open_nodes(offer: Offer) -> list[str]:
    return sorted(
        name
        for name, node in offer.nodes.items()
        if node.cpu and node.state == "ready" and not (node.cordoned or node.reclaimed)
    )
