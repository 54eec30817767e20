"""Jobs and plans as the REST API shows them, with what agents measured last."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import undefer_group

from ces_common.db.region_tables import AwayRow, SplitRow
from ces_common.db.tables import EXPANDED, AllocationRow, JobRow, NodeRow, PlanRow, ReservationRow
from ces_common.db.uow import ReadTx
from ces_common.jobfile import Flow, Task
from ces_common.messages.api import FlowView, JobSummary, JobView, Page, PartView, PlanView, TaskView
from ces_common.messages.cards import Sharing, sharing_of
from ces_common.states import JOB_WAITS, JobState
from ces_manager.columns import shared_columns
from ces_manager.cursors import job_cursor
from ces_manager.energy.views import energy_of_job
from ces_manager.errors import NotFound
from ces_manager.jobs.doubts import doubt
from ces_manager.jobs.past_moves import latest_moves
from ces_manager.jobs.records import reservations_of
from ces_manager.jobs.spec import spec_fields
from ces_manager.jobs.task_moves import last_look
from ces_manager.jobs.transitions import allocations_of, job_row
from ces_manager.measurements import Measurements
from ces_manager.queue.status import with_holder_names
from ces_manager.work.views import learned_error

_OF_NODE = ("runtime", "network", "confinement")
_OF_AWAY = ("decided_at", "committed_at", "remote_state")


def job_view(tx: ReadTx, job: str, measurements: Measurements, tenants: Collection[str] | None = None) -> JobView:
    """``tenants``: whose jobs are named where it waits for them; None for all. Raises NotFound."""
    row = job_row(tx, job)
    allocations = allocations_of(tx, [row])[row.id]
    by_task = {allocation.task: allocation for allocation in allocations}
    nodes = _nodes_of(tx, allocations)
    queue_status = row.queue_status if row.state in JOB_WAITS else None
    away = tx.session.get(AwayRow, row.id)
    moves = latest_moves(tx, row.id) if row.restart.scope == "task" else []  # no other's tasks move one by one
    split = tx.session.get(SplitRow, row.id) if row.spec.regions else None
    return JobView(
        **spec_fields(tx, [row.id], JobView)[row.id] | job_summary(row, allocations).model_dump(),
        waiting=row.waiting,
        **({} if away is None else {name: getattr(away, name) for name in _OF_AWAY}),
        unknown_since=split.unknown_since if split is not None else None if away is None else away.unknown_since,
        not_taken=(away.not_taken or {}) if away is not None and row.state is JobState.QUEUED else {},
        remark=doubt(tx, row) if row.state is JobState.QUEUED else None,
        parts=[] if split is None else [PartView.model_validate(part.model_dump()) for part in split.parts],
        speeds=row.speeds,
        queue_status=None if queue_status is None else with_holder_names(tx, [queue_status], tenants)[0],
        placement=[_task_view(task, by_task.get(task.name), nodes, measurements) for task in row.tasks],
        flows=_flow_views(tx, row.flows, reservations_of(tx, [row])[row.id], measurements, row.started_at),
        move=moves[0] if moves else None,
        moves=moves,
        last_look=last_look(tx, row.id) if row.adjusts else None,
        energy=energy_of_job(tx, row.id),
        work_error=learned_error(tx, row),
    )


def list_stamp(tx: ReadTx) -> tuple[object, ...]:
    """What every list of jobs follows from: it grows with each change, and retention alone makes jobs fewer without
    one."""
    cluster = tx.cluster()
    kept = tx.session.scalar(select(func.count()).select_from(JobRow))
    return cluster.epoch, cluster.version, cluster.sequence, kept


def list_jobs(
    tx: ReadTx,
    *,
    cursor: str | None,
    limit: int,
    state: JobState | None,
    name: str | None,
    tenants: Collection[str] | None = None,
) -> Page[JobSummary]:
    """The newest first; ``cursor`` is the ``next`` of the page before. ``tenants``: whose; None for all."""
    query = select(JobRow).options(undefer_group(EXPANDED)).order_by(JobRow.id.desc()).limit(limit + 1)
    last = job_cursor(cursor)
    if last is not None:
        query = query.where(JobRow.id < last)
    if state is not None:
        query = query.where(JobRow.state == state)
    if name is not None:
        query = query.where(JobRow.name == name)
    if tenants is not None:
        query = query.where(JobRow.tenant.in_(tenants))
    rows = tx.session.scalars(query).all()
    page = rows[:limit]
    allocations = allocations_of(tx, page)
    return Page[JobSummary](
        items=[job_summary(row, allocations[row.id]) for row in page], next=page[-1].id if len(rows) > limit else None
    )


def plan_view(tx: ReadTx, job: str) -> PlanView:
    """The newest plan that was committed for a job. Raises NotFound."""
    row = job_row(tx, job)
    query = (
        select(PlanRow)
        .where(PlanRow.job == job, PlanRow.attempt <= row.attempt)
        .order_by(PlanRow.attempt.desc(), PlanRow.version.desc())
        .limit(1)
    )
    plan = tx.session.scalars(query).one_or_none()
    if plan is None:
        raise NotFound(f"job {row.name} has no plan yet")
    reserved = select(ReservationRow).where(ReservationRow.job == job, ReservationRow.attempt == plan.attempt)
    flows = _flow_views(tx, row.flows, tx.session.scalars(reserved).all())
    return PlanView(**shared_columns(plan, PlanView) | {"plan": plan.id, "flows": flows})


def job_summary(row: JobRow, allocations: Sequence[AllocationRow]) -> JobSummary:
    return JobSummary(
        **shared_columns(row, JobSummary),
        tasks=len(row.tasks),
        nodes=sorted({allocation.node for allocation in allocations}),
    )


def _nodes_of(tx: ReadTx, allocations: Sequence[AllocationRow]) -> dict[str, NodeRow]:
    """Without those that were forgotten."""
    names = {allocation.node for allocation in allocations}
    found = tx.session.scalars(select(NodeRow).where(NodeRow.name.in_(names))) if names else ()
    return {node.name: node for node in found}


def _task_view(
    task: Task, allocation: AllocationRow | None, nodes: Mapping[str, NodeRow], measurements: Measurements
) -> TaskView:
    view = TaskView.model_validate(task, from_attributes=True)
    if allocation is None:
        return view
    node = nodes.get(allocation.node)
    return view.model_copy(
        update={
            "allocation": allocation.id,
            "node": allocation.node,
            "address": allocation.address,
            "state": allocation.state,
            "incarnation": allocation.incarnation,
            "exit_code": allocation.exit_code,
            "reason": "; ".join(filter(None, (allocation.reason, allocation.waits))) or None,
            "cpu_desired": allocation.cpu_desired,
            "cards": allocation.cards,
            "gpu_sharing": _sharing(allocation, node),
            "progress": measurements.progress(allocation.node, allocation.id),
            **({} if node is None else {name: getattr(node, name) for name in _OF_NODE}),
        }
    )


def _sharing(allocation: AllocationRow, node: NodeRow | None) -> Sharing | None:
    """None where it has no share."""
    if not allocation.gpu_share:
        return None
    known = {} if node is None else {card.id: card for card in node.cards}
    found = [sharing_of(known[each]) for each in allocation.cards if each in known]
    return found[0] if found else "counted"


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
                update={"rate": row.rate, "path": row.path, "number": row.number, "enforced": enforced}
            )
            usage = measurements.flow(row.path[0], row.number, since) if measurements and since else None
            if usage is not None:
                view = view.model_copy(update={"measured": usage.measured, "peak": usage.peak})
        views.append(view)
    return views
