"""With how much CPU jobs begin whose amount CES chooses, and for how long they wait for it. Pure but for the policy,
with a memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Final, Literal

import numpy as np
import structlog
from numpy.typing import NDArray

from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_core.amounts.policy import SHIPPED, Ask, load_amounts_policy
from ces_core.amounts.schema import MOST
from ces_core.amounts.settings import SLOTS
from ces_core.amounts.single import FULL_SPEED_SLOTS, NodeUnits, advised
from ces_core.model.errors import PolicyError
from ces_core.queue.parameters import Parameters
from ces_core.queue.shares import capacity_of
from ces_scheduler.cpu_levels import STEP
from ces_scheduler.offer import Offer
from ces_scheduler.start_cpu import asked_cpu, at_cpu, cpu_level, cpu_range

log = structlog.get_logger()
Rule = Literal["even", "patient", "tapfinger"]
EVEN: Final = "even"
PATIENCE: Final = 2.0
"""A job waits for its amount this many times as long at most as it would take longer with what its file asks for."""
POLICY: Final = "hetero_6"
"""The policy that is asked: the one that was trained with clusters of different sizes."""
CPU = 0  # the row of node amounts


@dataclass(frozen=True)
class _Open:
    """A waiting job whose amount is to be chosen. ``most``: what each worker may begin with, as far as nodes and its
    tenant's quota have so much; more than it asks for."""

    record: JobRecord
    asked: int
    most: int

    def patience_s(self, cpu: int) -> float:
        """For how long after its submission it waits for so much."""
        assert self.record.expected_s is not None
        return PATIENCE * self.record.expected_s * (1 - self.asked / cpu)


Amounts = Callable[[Sequence[_Open], Offer, float], Mapping[str, int]]
"""What each worker is to begin with, by job; of the open jobs, with what is offered, at a time of day."""


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
        self._until: dict[str, tuple[int, float]] = {}  # job -> the amount that it waits for, and until when
        self._found: list[JobRecord] = []
        self._given: dict[str, tuple[JobRecord, int, JobRecord]] = {}  # job -> its record, the amount, that with it

    def of(self, waiting: list[JobRecord], offer: Offer, now: datetime) -> tuple[list[JobRecord], float]:
        """The waiting jobs, each with the CPU with which it is to begin, and after how many seconds one of them has
        waited for more than it asks for long enough."""
        if self._rule == EVEN or self._parameters.preemption is not None:
            return waiting, math.inf
        now_s = now.timestamp()
        if self._asked is None or self._asked[0] is not waiting or self._asked[1] is not offer:
            self._until = self._chosen(waiting, offer, now_s)
            self._asked = waiting, offer
        amounts = {name: cpu for name, (cpu, until_s) in self._until.items() if now_s < until_s}
        due_s = min((until_s for _, until_s in self._until.values() if until_s > now_s), default=math.inf)
        self._found = self._with(waiting, amounts)
        return self._found, due_s - now_s

    def alone(self, record: JobRecord, offer: Offer) -> JobRecord:
        """A job that was submitted just now and waits with no others, with the CPU with which it is to begin."""
        if self._rule == EVEN or self._parameters.preemption is not None:
            return record
        found = self._chosen([record], offer, record.submitted_at.timestamp())
        return at_cpu(record, found[record.id][0]) if found else record

    def _chosen(self, waiting: Sequence[JobRecord], offer: Offer, now_s: float) -> dict[str, tuple[int, float]]:
        capacities = _capacities(offer)
        jobs = [job for record in waiting if (job := self._open(record, offer, capacities)) is not None]
        amounts = {job.record.id: job.most for job in jobs}
        if self._policy is not None and jobs:
            try:
                amounts |= advice(self._policy, jobs, offer, now_s)
            except PolicyError as error:
                log.warning("amounts were chosen without the policy", reason=str(error))
        found = {}
        for job in jobs:
            cpu = amounts[job.record.id]
            until_s = math.inf if cpu <= job.asked else job.record.submitted_at.timestamp() + job.patience_s(cpu)
            found[job.record.id] = cpu, until_s
        return found

    def _open(self, record: JobRecord, offer: Offer, capacities: NDArray[np.float64]) -> _Open | None:
        """None where it begins with what it asks for: only of a job of one size that says how long it takes, and has no
        deadline, is it known what waiting for more is worth."""
        limits = cpu_range(record)
        if limits is None or record.state is not JobState.QUEUED or record.size is None or record.spec is None:
            return None
        elastic, asked = record.spec.elastic, asked_cpu(record)
        if elastic is None or len(elastic.allowed) > 1 or not record.expected_s or record.deadline_at is not None:
            return None
        most = min(limits.max, self._quota(record, offer) // record.size)
        most = most_each(record.size, capacities, asked, most)
        return _Open(record, asked, most) if most > asked else None

    def _quota(self, record: JobRecord, offer: Offer) -> int:
        """Millicores that its tenant may hold."""
        quota = self._parameters.tenant(record.tenant).quota.get("cpu", 1.0)
        return int(quota * float(capacity_of(offer.cluster)[CPU]))

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


def most_each(workers: int, capacities: NDArray[np.float64], asked: int, most: int) -> int:
    """The most that each of so many workers can have on empty nodes at once, in steps from what they ask for up to
    ``most``."""
    low, high = 0, max(0, -(-(most - asked) // STEP))
    while low < high:
        steps = (low + high + 1) // 2
        if np.floor(capacities / min(most, asked + steps * STEP)).sum() >= workers:
            low = steps
        else:
            high = steps - 1
    return min(most, asked + low * STEP) if low else asked


def advice(policy: Ask, jobs: Sequence[_Open], offer: Offer, now_s: float) -> dict[str, int]:
    """What the policy gives to the first jobs, the shortest first; where it has one wait, that waits for its most.
    Raises PolicyError."""

    def alone_s(job: _Open) -> float:
        assert job.record.expected_s is not None
        return job.record.expected_s * job.asked / job.most

    shown = sorted(jobs, key=lambda job: (-job.record.priority, alone_s(job), job.record.id))
    unit = max(job.most for job in shown) / MOST
    slot_s = max(median(alone_s(job) for job in shown) / FULL_SPEED_SLOTS, 1e-3)
    waited = [(now_s - job.record.submitted_at.timestamp()) / slot_s for job in shown]
    found = {}
    for job, units in zip(shown, advised(policy, _nodes(offer, unit, slot_s, now_s), waited), strict=False):
        limits = cpu_range(job.record)
        assert limits is not None
        found[job.record.id] = max(limits.min, min(round(units * unit), job.most)) if units else job.most
    assert len(found) == min(len(jobs), SLOTS)
    return found


def _nodes(offer: Offer, unit: float, slot_s: float, now_s: float) -> list[NodeUnits]:
    """Those that take new work."""
    running: dict[str, list[tuple[float, float]]] = {}
    for record in offer.records.values():
        if cpu_range(record) is None or record.started_at is None:
            continue
        level, ran = cpu_level(record) / unit, max(0.0, now_s - record.started_at.timestamp()) / slot_s
        for each in record.allocations:
            if not each.over:
                running.setdefault(each.node, []).append((level, ran))
    index, cluster = offer.cluster.topology.node_index, offer.cluster
    return [
        NodeUnits(
            int(cluster.node_capacity[CPU, index[name]] / unit),
            int(cluster.node_free[CPU, index[name]] / unit),
            running.get(name, ()),
        )
        for name in _open_nodes(offer)
    ]


def _open_nodes(offer: Offer) -> list[str]:
    return sorted(
        name
        for name, node in offer.nodes.items()
        if node.cpu and node.state == "ready" and not (node.cordoned or node.reclaimed)
    )


def _capacities(offer: Offer) -> NDArray[np.float64]:
    index = offer.cluster.topology.node_index
    found: NDArray[np.float64] = offer.cluster.node_capacity[CPU, [index[name] for name in _open_nodes(offer)]]
    return found
