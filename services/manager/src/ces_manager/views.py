"""Rows as the REST API shows them, with what agents measured last. Lists page by cursor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import undefer_group

from ces_common.db.tables import (
    EXPANDED,
    LIVE_STATES,
    AllocationRow,
    JobRow,
    LeaseRow,
    LinkRow,
    MediumRow,
    NodeRow,
    PlanRow,
    ReservationRow,
)
from ces_common.db.uow import ReadTx
from ces_common.jobfile import Flow, Task
from ces_common.messages.api import (
    FlowView,
    JobSummary,
    JobView,
    LinkView,
    NodeView,
    Page,
    PlanView,
    TaskView,
    TopologyView,
)
from ces_common.messages.reports import LinkUsage
from ces_common.states import JOB_WAITS, JobState
from ces_manager.changes import allocations_of, job_row
from ces_manager.errors import Invalid, NotFound
from ces_manager.measurements import Measurements
from ces_manager.records import reservations_of
from ces_manager.room import held_on_links, held_on_nodes
from ces_manager.standings import named


def job_view(tx: ReadTx, job: str, measurements: Measurements) -> JobView:
    """Raises NotFound."""
    row = job_row(tx, job)
    allocations = allocations_of(tx, [row])[row.id]
    by_task = {allocation.task: allocation for allocation in allocations}
    standing = row.standing if row.state in JOB_WAITS else None
    return JobView(
        **_summary(row, allocations).model_dump(),
        waiting=row.waiting,
        standing=None if standing is None else named(tx, [standing])[0],
        disconnect=row.disconnect,
        preemption=row.preemption,
        placement=[_task_view(task, by_task.get(task.name), measurements) for task in row.tasks],
        flows=_flow_views(tx, row.flows, reservations_of(tx, [row])[row.id], measurements, row.started_at),
    )


def list_jobs(
    tx: ReadTx, *, cursor: str | None, limit: int, state: JobState | None, name: str | None
) -> Page[JobSummary]:
    """The newest first; ``cursor`` is the ``next`` of the page before."""
    query = select(JobRow).options(undefer_group(EXPANDED)).order_by(JobRow.id.desc()).limit(limit + 1)
    if cursor:
        query = query.where(JobRow.id < cursor)
    if state is not None:
        query = query.where(JobRow.state == state)
    if name is not None:
        query = query.where(JobRow.name == name)
    rows = tx.session.scalars(query).all()
    page = rows[:limit]
    allocations = allocations_of(tx, page)
    return Page[JobSummary](
        items=[_summary(row, allocations[row.id]) for row in page], next=page[-1].id if len(rows) > limit else None
    )


def plan_view(tx: ReadTx, job: str) -> PlanView:
    """The newest plan that was committed for a job. Raises NotFound."""
    row = job_row(tx, job)
    query = select(PlanRow).where(PlanRow.job == job).order_by(PlanRow.attempt.desc(), PlanRow.version.desc()).limit(1)
    plan = tx.session.scalars(query).one_or_none()
    if plan is None:
        raise NotFound(f"job {row.name} has no plan yet")
    reserved = select(ReservationRow).where(ReservationRow.job == job, ReservationRow.attempt == plan.attempt)
    return PlanView(
        plan=plan.id,
        job=job,
        attempt=plan.attempt,
        solver=plan.solver,
        version=plan.version,
        committed_at=plan.committed_at,
        metrics=plan.metrics,
        considered=plan.considered,
        assignments=plan.assignments,
        flows=_flow_views(tx, row.flows, tx.session.scalars(reserved).all()),
    )


def list_nodes(tx: ReadTx, measurements: Measurements, *, cursor: str | None, limit: int) -> Page[NodeView]:
    """In order of their names; the cursor is the last name seen."""
    query = select(NodeRow.name).where(NodeRow.name > (cursor or "")).order_by(NodeRow.name).limit(limit + 1)
    names = tx.session.scalars(query).all()
    views = _node_views(tx, measurements, names[:limit])
    return Page[NodeView](items=views, next=names[limit - 1] if len(names) > limit else None)


def node_view(tx: ReadTx, node: str, measurements: Measurements) -> NodeView:
    """Raises NotFound."""
    views = _node_views(tx, measurements, [node])
    if not views:
        raise NotFound(f"no node {node}")
    return views[0]


def list_links(tx: ReadTx, measurements: Measurements, *, cursor: str | None, limit: int) -> Page[LinkView]:
    """In order of their ends; the cursor is the number of links seen."""
    after = cursor_number(cursor)
    views = _link_views(tx, measurements, after, limit + 1)
    return Page[LinkView](items=views[:limit], next=str(after + limit) if len(views) > limit else None)


def topology_view(tx: ReadTx, measurements: Measurements) -> TopologyView:
    media = tx.session.scalars(select(MediumRow).order_by(MediumRow.name))
    return TopologyView(
        version=tx.cluster().topology_version,
        nodes=_node_views(tx, measurements),
        links=_link_views(tx, measurements),
        media={row.name: row.bandwidth for row in media},
    )


def _node_views(tx: ReadTx, measurements: Measurements, names: Collection[str] | None = None) -> list[NodeView]:
    """All nodes, or those named, in order of their names."""
    query = select(NodeRow, LeaseRow).outerjoin(LeaseRow, LeaseRow.node == NodeRow.name).order_by(NodeRow.name)
    live = (
        select(AllocationRow.node, JobRow.name, AllocationRow.task)
        .join(JobRow, JobRow.id == AllocationRow.job)
        .where(AllocationRow.state.in_(LIVE_STATES))
        .order_by(JobRow.id, AllocationRow.rank)
    )
    if names is not None:
        query, live = query.where(NodeRow.name.in_(names)), live.where(AllocationRow.node.in_(names))
    placed: dict[str, list[str]] = defaultdict(list)
    for node, job, task in tx.session.execute(live):
        placed[node].append(f"{job}/{task}")
    held = held_on_nodes(tx, names)
    views = []
    for row, lease in tx.session.execute(query):
        beat = measurements.beat(row.name)
        cpu, memory, gpu = held.get(row.name, (0, 0, 0))
        views.append(
            NodeView(
                name=row.name,
                state=row.state,
                cordoned=row.cordoned,
                cpu=row.cpu,
                memory=row.memory,
                gpu=row.gpu,
                cpu_allocated=cpu,
                memory_allocated=memory,
                gpu_allocated=gpu,
                cpu_used=beat[1].cpu if beat else None,
                memory_used=beat[1].memory if beat else None,
                arch=row.arch,
                labels=row.labels,
                runtime=row.runtime,
                network=row.network,
                host_address=row.host_address,
                subnet=row.subnet,
                datasets=row.datasets,
                last_heartbeat=lease.heard_at if lease is not None and lease.boot else None,
                allocations=placed[row.name],
            )
        )
    return views


def _link_views(tx: ReadTx, measurements: Measurements, after: int = 0, limit: int | None = None) -> list[LinkView]:
    query = select(LinkRow).order_by(LinkRow.src, LinkRow.dst).offset(after).limit(limit)
    rows = tx.session.scalars(query).all()
    reserved = held_on_links(tx, {row.src for row in rows})
    views = []
    for row in rows:
        usage = measurements.link(row.src, row.dst)
        views.append(
            LinkView(
                src=row.src,
                dst=row.dst,
                bandwidth=row.bandwidth,
                reserved=reserved.get((row.src, row.dst), 0),
                used=usage.sent if usage else None,
                drops=usage.drops if usage else None,
                errors=usage.errors if usage else None,
                kind=row.kind,
                medium=row.medium,
                state=row.state,
                state_since=row.state_since,
                reason=row.state_reason,
                measured=row.measured,
                measured_at=row.measured_at,
                round_trip_s=_round_trip(row, usage),
            )
        )
    return views


def _round_trip(row: LinkRow, usage: LinkUsage | None) -> float | None:
    if usage is not None and usage.round_trip_s is not None:
        return usage.round_trip_s
    return None if row.round_trip_us is None else row.round_trip_us / 1e6


def _summary(row: JobRow, allocations: Sequence[AllocationRow]) -> JobSummary:
    return JobSummary(
        id=row.id,
        name=row.name,
        state=row.state,
        priority=row.priority,
        tenant=row.tenant,
        expected_s=row.expected_s,
        tasks=len(row.tasks),
        attempt=row.attempt,
        restarts=row.restarts,
        nodes=sorted({allocation.node for allocation in allocations}),
        reason=row.reason,
        submitted_at=row.submitted_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def _task_view(task: Task, allocation: AllocationRow | None, measurements: Measurements) -> TaskView:
    view = TaskView(
        name=task.name,
        rank=task.rank,
        cpu=task.cpu,
        memory=task.memory,
        gpu=task.gpu,
        image=task.image,
        command=task.command,
    )
    if allocation is None:
        return view
    return view.model_copy(
        update={
            "allocation": allocation.id,
            "node": allocation.node,
            "address": allocation.address,
            "state": allocation.state,
            "incarnation": allocation.incarnation,
            "exit_code": allocation.exit_code,
            "reason": allocation.reason,
            "progress": measurements.progress(allocation.node, allocation.id),
        }
    )


def _flow_views(
    tx: ReadTx,
    flows: Sequence[Flow],
    reserved: Sequence[ReservationRow],
    measurements: Measurements | None = None,
    since: datetime | None = None,
) -> list[FlowView]:
    """``since``: when the job started; what was measured before was another flow of the same number."""
    given: Mapping[tuple[str, str], ReservationRow] = {(row.src, row.dst): row for row in reserved}
    passed = {node for row in reserved for node in row.path}
    shaping = select(NodeRow.name).where(NodeRow.name.in_(passed), NodeRow.network == "tc")
    shapers = set(tx.session.scalars(shaping)) if passed else set()
    views = []
    for flow in flows:
        view = FlowView(src=flow.src, dst=flow.dst, mode=flow.mode, min=flow.min, max=flow.max)
        row = given.get((flow.src, flow.dst))
        if row is not None:
            enforced = shapers.issuperset(row.path)
            view = view.model_copy(
                update={"bandwidth": row.bandwidth, "path": row.path, "number": row.number, "enforced": enforced}
            )
            usage = measurements.flow(row.path[0], row.number, since) if measurements and since else None
            if usage is not None:
                view = view.model_copy(update={"measured": usage.rate, "peak": usage.peak})
        views.append(view)
    return views


def cursor_number(cursor: str | None) -> int:
    """How much of a list was seen. Raises Invalid."""
    if cursor is None:
        return 0
    if not cursor.isdecimal() or len(cursor) > 9:
        raise Invalid("cursor", "give the next of the page before")
    return int(cursor)
