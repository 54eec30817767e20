"""Proposals to give the workers of running jobs another amount of CPU in place, and the answers they wait for."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from prometheus_client import Counter as Metric
from ulid import ULID

from ces_common.bus.port import Bus
from ces_common.messages.events import new_event
from ces_common.messages.plans import CpuProposed, CpuRejected
from ces_common.messages.records import JobRecord
from ces_common.state_view import StateView
from ces_core.queue.parameters import Parameters
from ces_core.queue.shares import amounts_of, capacity_of
from ces_scheduler.card_choice import CardRoom
from ces_scheduler.cpu_levels import NODE, TENANT, Place, Sharer, given_up, next_change
from ces_scheduler.cycle_run import QUOTA, CycleRun, Placing, blocked, tenants_of
from ces_scheduler.followed_jobs import FollowedJobs
from ces_scheduler.offer import Cells, Offer
from ces_scheduler.proposals import Clock, Rejections, backoff_s
from ces_scheduler.sizing import Sizing, resizable
from ces_scheduler.solver_calls import SolverCalls
from ces_scheduler.start_cpu import cpu_level, cpu_range, waits_for_more

log = structlog.get_logger()
ANSWER_S = 5.0  # after this long without an answer a proposal counts as lost
GIVES_S = 30.0  # within which a node is expected to say that its workers have no more
BUDGET_MS = 250.0  # of solver time in one look
TRIED = 4  # waiting jobs for which room is looked for, the first in the queue
CPU = 0  # the row of node amounts
PROPOSED = Metric("ces_cpu_changes_proposed_total", "Changes of running workers' CPU proposed")


@dataclass(frozen=True)
class _Awaited:
    """A proposal that was not answered yet. ``version``: of the job then."""

    change: str
    job: str
    version: int
    until: float


@dataclass(frozen=True, eq=False)
class _Scene:
    """``sharers``: jobs whose amounts may change now. ``free``: millicores of their places that nobody holds.
    ``coming``: the offer without what workers are to have no longer, and nodes have not confirmed yet; ``gives``:
    whether there is any."""

    offer: Offer
    sharers: Sequence[Sharer]
    free: Mapping[Place, float]
    coming: Offer
    gives: bool

    def with_least(self, givers: Iterable[Sharer]) -> Offer:
        """What is offered once these have their least."""
        index = self.offer.cluster.topology.node_index
        fewer = {
            each.name: {(CPU, index[name]): (each.level - each.least) * count for (_, name), count in _nodes(each)}
            for each in givers
        }
        return _less_held(self.coming, fewer)


class CpuAmounts:
    """Proposes one change at a time. ``least_s``: between two growths of one job."""

    def __init__(self, bus: Bus, source: str, clock: Clock, least_s: float) -> None:
        self._bus, self._source, self._clock, self._least_s = bus, source, clock, least_s
        self._awaited: _Awaited | None = None
        self._rejected: dict[str, Rejections] = {}  # by job
        self._grew: dict[str, float] = {}  # job -> when that was last proposed
        self._gives: dict[str, float] = {}  # job -> since when it has more than it is to have
        self._looked: tuple[Offer, CycleRun | None] | None = None  # at what, to no avail
        self._due = -math.inf
        self._elastic = FollowedJobs(lambda job: cpu_range(job) is not None)
        self.makes_room = False  # whether, at the last look, room was about to be made for a job that waits

    @property
    def busy(self) -> bool:
        """Whether a proposal awaits its answer."""
        return self._awaited is not None

    def comes_first(self, view: StateView, offer: Offer) -> bool:
        """Whether a job that waits may get a place by what others have above their least of CPU: before anybody is
        preempted for it, that is looked at."""
        if self._looked is not None and self._looked[0] is offer and not self.makes_room:
            return False
        held = [offer.records[name] for name in self._elastic.look(view) & offer.records.keys()]
        return any(_gives(each) for each in held)

    async def look(self, view: StateView, offer: Offer, left: Offer, run: CycleRun | None, placing: Placing) -> float:
        """Propose a change where one is due; returns after how many seconds to look again unasked. ``left``: of the
        offer, what is owed to nobody. To be called while no other proposal awaits its answer. Raises BusError."""
        now = self._clock()
        if self._awaited is not None:
            record = view.jobs.get(self._awaited.job)
            if record is not None and record.version == self._awaited.version:
                if now < self._awaited.until:
                    return self._awaited.until - now
                self._grew.pop(self._awaited.job, None)  # it was lost
            self._awaited = None
        if self._looked is not None and self._looked[0] is offer and self._looked[1] is run and now < self._due:
            return self._due - now
        self.makes_room = False
        held = [offer.records[name] for name in sorted(self._elastic.look(view) & offer.records.keys())]
        for memory in (self._rejected, self._grew, self._gives):
            for name in memory.keys() - {each.id for each in held}:
                del memory[name]
        if not held:
            return math.inf
        scene = self._scene(held, left, placing.parameters, now)
        found = await asyncio.to_thread(self._decide, scene, run, placing, now)
        if found is not None:
            await self._propose(*found, offer, view.version)
            return ANSWER_S
        dues = [self._grew[each.name] + self._least_s for each in scene.sharers if each.name in self._grew]
        dues += [each.until for each in self._rejected.values()]
        dues += [since + GIVES_S for since in self._gives.values()]
        self._looked, self._due = (offer, run), min([due for due in dues if due > now], default=math.inf)
        return self._due - now

    def rejected(self, answer: CpuRejected) -> None:
        if self._awaited is None or self._awaited.change != answer.change:
            return
        log.info("a change of CPU was rejected", job=answer.job, reason=answer.reason)
        self._awaited = None
        self._grew.pop(answer.job, None)
        if not answer.stale:
            count = self._rejected.get(answer.job, Rejections()).count + 1
            self._rejected[answer.job] = Rejections(count, self._clock() + backoff_s(1 + count))

    def _scene(self, held: Sequence[JobRecord], offer: Offer, parameters: Parameters, now: float) -> _Scene:
        pending = {each.id: each for each in held if any(one.cpu_pending for one in each.allocations)}
        self._gives = {name: self._gives.get(name, now) for name in pending}
        able = [
            each for each in held if each.id not in pending and now >= self._rejected.get(each.id, Rejections()).until
        ]
        sharers = [_sharer(each, offer, parameters) for each in able if resizable(each)]
        free = _free(sharers, offer, parameters)
        fewer = {
            name: _pending_cells(record, offer) for name, record in pending.items() if now < self._gives[name] + GIVES_S
        }
        return _Scene(offer, sharers, free, _less_held(offer, fewer), any(fewer.values()))

    def _decide(self, scene: _Scene, run: CycleRun | None, placing: Placing, now: float) -> tuple[str, int] | None:
        short = set[str]()  # tenants whose quota somebody waits for
        if run is not None:
            found = self._room(scene, run, placing)
            if found is not None or blocked(run.given, run.decisions):
                return found
            records = run.given.records
            waiting = (each for each in run.statuses if each.reason is not None and each.reason.code == QUOTA)
            short = {records[each.job].tenant for each in waiting if not waits_for_more(records[each.job])}
        if scene.gives:
            return None  # whoever it is given up for is to have all of it
        tenants = tenants_of(scene.offer)
        rested = [
            each.name
            for each in scene.sharers
            if now - self._grew.get(each.name, -math.inf) >= self._least_s and tenants[each.name] not in short
        ]
        capacity = dict(scene.free)
        for each in scene.sharers:
            for place, count in each.workers.items():
                capacity[place] += each.level * count
        return next_change(scene.sharers, capacity, scene.free, rested)

    def _room(self, scene: _Scene, run: CycleRun, placing: Placing) -> tuple[str, int] | None:
        """For the first in the queue that gets a place by it."""
        seeds = {name: job.attempt for name, job in run.given.records.items()}
        room = CardRoom(scene.offer, run.given.records)
        how = (placing.solver, seeds, placing.seconds, placing.time_limit_s, placing.fallback)
        calls = SolverCalls(*how, cards=room)
        sizing = Sizing(calls, placing.parameters, tenants_of(scene.offer), placing.paths, BUDGET_MS)
        records = run.given.records
        waiting = [each for each in run.statuses if each.reason is not None and not waits_for_more(records[each.job])]
        for status in waiting[:TRIED]:
            record = records[status.job]
            mine = status.reason is not None and status.reason.code == QUOTA
            givers = [
                each
                for each in scene.sharers
                if each.priority <= record.priority
                and each.level > each.least
                and (not mine or scene.offer.records[each.name].tenant == record.tenant)
            ]
            if scene.gives and sizing.place(record, scene.coming) is not None:
                self.makes_room = True
                return None
            decision = sizing.place(record, scene.with_least(givers)) if givers else None
            if decision is None:
                continue
            found = given_up(givers, _lacking(record, decision.cells, scene.coming, placing.parameters))
            if found is not None:
                self.makes_room = True
                return found
        return None

    async def _propose(self, job: str, cpu: int, offer: Offer, version: int) -> None:
        record, name = offer.records[job], str(ULID())
        proposal = CpuProposed(change=name, job=job, attempt=record.attempt, version=version, cpu=cpu)
        event = new_event(self._source, "cpu", "proposed", job, proposal, datetime.now(UTC), event_id=name)
        await self._bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)
        self._awaited = _Awaited(name, job, record.version, self._clock() + ANSWER_S)
        if cpu > cpu_level(record):
            self._grew[job] = self._clock()
        PROPOSED.inc()
        log.info("a change of CPU is proposed", job=job, cpu=cpu, version=version)


def _gives(record: JobRecord) -> bool:
    limits = cpu_range(record)
    if limits is None or not resizable(record):
        return False
    return cpu_level(record) > limits.min or any(each.cpu_pending for each in record.allocations)


def _sharer(record: JobRecord, offer: Offer, parameters: Parameters) -> Sharer:
    limits = cpu_range(record)
    assert limits is not None
    assert record.spec is not None
    assert record.spec.elastic is not None
    elastic, level = record.spec.elastic, cpu_level(record)
    on = Counter(each.node for each in record.allocations if elastic.includes(each.task))
    workers = {(NODE, name): count for name, count in on.items()}
    if "cpu" in parameters.tenant(record.tenant).quota:
        workers[TENANT, record.tenant] = on.total()
    nodes = [offer.nodes.get(name) for name in on]
    grows = all(each is not None and each.state == "ready" and not (each.cordoned or each.reclaimed) for each in nodes)
    return Sharer(record.id, record.priority, level, limits.min, limits.max if grows else level, workers)


def _nodes(sharer: Sharer) -> list[tuple[Place, int]]:
    return [(place, count) for place, count in sharer.workers.items() if place[0] == NODE]


def _free(sharers: Iterable[Sharer], offer: Offer, parameters: Parameters) -> dict[Place, float]:
    """Millicores of the sharers' places that nobody holds."""
    index, free = offer.cluster.topology.node_index, offer.cluster.node_free[CPU]
    found: dict[Place, float] = {}
    for kind, name in {place for each in sharers for place in each.workers}:
        left = float(free[index[name]]) if kind == NODE else _quota_left(name, offer, parameters)
        found[kind, name] = max(0.0, left)
    return found


def _quota_left(tenant: str, offer: Offer, parameters: Parameters) -> float:
    """Millicores that a tenant may hold besides, where its quota says so."""
    quota = parameters.tenant(tenant).quota.get("cpu")
    if quota is None:
        return math.inf
    tenants = tenants_of(offer)
    used = sum(float(amounts_of(cells)[CPU]) for name, cells in offer.held.items() if tenants.get(name) == tenant)
    return quota * float(capacity_of(offer.cluster)[CPU]) - used


def _pending_cells(record: JobRecord, offer: Offer) -> Cells:
    """What its nodes are about to say that its workers have no more."""
    found = Counter[tuple[int, int]]()
    for each in record.allocations:
        node = offer.nodes.get(each.node)
        if each.cpu_pending and node is not None and node.state == "ready":
            assert each.cpu is not None
            assert each.cpu_desired is not None
            found[CPU, offer.cluster.topology.node_index[each.node]] += each.cpu - each.cpu_desired
    return found


def _less_held(offer: Offer, fewer: Mapping[str, Mapping[tuple[int, int], float]]) -> Offer:
    """The offer with jobs holding so much less."""
    for name, cells in fewer.items():
        if cells:
            held = {cell: amount - cells.get(cell, 0) for cell, amount in offer.held[name].items()}
            offer = offer.without(name).less({name: held})
    return offer


def _lacking(record: JobRecord, cells: Cells, offer: Offer, parameters: Parameters) -> dict[Place, float]:
    """Millicores that a job needs of places beyond what is free there."""
    names = {index: name for name, index in offer.cluster.topology.node_index.items()}
    free = offer.cluster.node_free[CPU]
    found: dict[Place, float] = {
        (NODE, names[index]): amount - float(free[index]) for (row, index), amount in cells.items() if row == CPU
    }
    found[TENANT, record.tenant] = float(amounts_of(cells)[CPU]) - _quota_left(record.tenant, offer, parameters)
    return found
