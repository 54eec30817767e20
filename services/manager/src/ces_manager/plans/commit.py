"""Commit of a proposed plan: all of it or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ces_common.db.tables import JobRow, PlanRow
from ces_common.db.uow import WriteTx
from ces_common.jobfile import Flow, Task
from ces_common.messages.plans import PlanCommitted, PlanProposed, PlanRejected
from ces_common.states import JobState
from ces_manager.jobs.checkpoints import place_first
from ces_manager.jobs.cpu_amounts import desire_cpu, why_not_cpu
from ces_manager.jobs.doubts import doubt
from ces_manager.jobs.job_events import emit_allocation, emit_job
from ces_manager.jobs.job_metrics import note_step
from ces_manager.jobs.link_shares import reserve_links
from ces_manager.jobs.records import allocation_record, flow_record
from ces_manager.jobs.trace_steps import refuse_step, trace_step
from ces_manager.jobs.transitions import find_job
from ces_manager.plans.addresses import Exhausted
from ces_manager.plans.allocation import Placement, allocate_tasks, reserve_flows
from ces_manager.plans.application_fit import application_misfit
from ces_manager.plans.feasibility import Misfit, Obstacle, misfit
from ces_manager.plans.residual import residual_of
from ces_manager.plans.resumption import commit_resumption


def commit_plan(tx: WriteTx, plan: PlanProposed) -> str | None:
    """Commit a plan that fits the residual capacity; reject any other, and return the reason, a Misfit where it is one.
    A rejected plan changes nothing."""
    row = find_job(tx, plan.job)
    if row is None:
        return _reject(tx, None, plan, Misfit(Obstacle.OUTDATED, f"no job {plan.job}"))
    act = commit_resumption if row.state is JobState.SUSPENDED else _place
    reason = act(tx, row, plan)
    if reason is not None:
        refuse_step(tx, row, "commit plan", reason)
        return _reject(tx, row, plan, reason)
    tx.session.add(
        PlanRow(
            id=plan.plan,
            job=row.id,
            attempt=row.attempt,
            solver=plan.solver,
            version=tx.version,
            committed_at=tx.now,
            metrics=plan.metrics,
            considered=plan.considered,
            assignments=plan.assignments,
            flows=plan.flows,
        )
    )
    return None


def _reject(tx: WriteTx, row: JobRow | None, plan: PlanProposed, reason: str) -> str:
    rejected = PlanRejected(plan=plan.plan, job=plan.job, attempt=plan.attempt, reason=reason)
    tx.emit("plan", "rejected", plan.plan, rejected, job=None if row is None else row.id)
    return reason


def _place(tx: WriteTx, row: JobRow, plan: PlanProposed) -> str | None:
    """Place a queued job. Returns the reason where that cannot be done; then nothing has changed."""
    size = row.size if plan.size is None else plan.size
    if size != row.size and (row.spec.elastic is None or size not in row.spec.elastic.allowed):
        return Misfit(Obstacle.MALFORMED, f"job {row.name} has no size {size}")
    sized = row.spec.at_size(size) if size is not None and size != row.size else None
    tasks, flows = (row.tasks, row.flows) if sized is None else (sized.expand_tasks(), sized.expand_flows())
    reason = why_not_cpu(row, plan.cpu)
    if reason is not None:
        return reason
    given = tasks
    if size is not None and plan.cpu is not None:
        given = row.spec.at_size(size).at_cpu(plan.cpu).expand_tasks()
    reason = _reason_against(tx, row, plan, given, flows)
    if reason is not None:
        return reason
    placement = Placement(row.id, row.attempt, given, flows, plan.assignments, plan.flows, plan.cards)
    try:
        allocations = allocate_tasks(tx, placement)
        reservations = reserve_flows(tx, placement)
    except Exhausted as error:
        return Misfit(Obstacle.ADDRESSES, str(error))
    for allocation, task in zip(allocations, tasks, strict=True):
        if allocation.cpu != task.cpu:
            desire_cpu(tx, allocation, allocation.cpu)
    tx.session.add_all([*allocations, *reservations])
    reserve_links(tx, reservations)
    committed = PlanCommitted(
        plan=plan.plan,
        job=row.id,
        attempt=row.attempt,
        solver=plan.solver,
        metrics=plan.metrics,
        allocations=[allocation_record(allocation) for allocation in allocations],
        flows=[flow_record(flow) for flow in reservations],
    )
    trace_step(tx, row, "commit plan")
    tx.emit("plan", "committed", plan.plan, committed, job=row.id, traceparent=row.traceparent)
    if sized is not None:
        row.size, row.tasks, row.flows = size, tasks, flows
    if size is not None:
        place_first(tx, row, allocations[0].node)
    row.waiting, row.queue_status, row.reason = None, None, None
    note_step(tx, row, JobState.PLANNED)
    row.state, row.state_since = JobState.PLANNED, tx.now
    row.placed_at = tx.now
    row.version = tx.version
    emit_job(tx, row, JobState.QUEUED)
    for allocation in allocations:
        emit_allocation(tx, row, allocation, None)
    return None


def _reason_against(
    tx: WriteTx, row: JobRow, plan: PlanProposed, tasks: Sequence[Task], flows: Sequence[Flow]
) -> str | None:
    if row.state is not JobState.QUEUED:
        return Misfit(Obstacle.OUTDATED, f"job {row.name} is {row.state.value}, not queued")
    if row.attempt != plan.attempt:
        return Misfit(Obstacle.OUTDATED, f"job {row.name} is at attempt {row.attempt}, the plan is for {plan.attempt}")
    if (why := doubt(tx, row)) is not None:
        return Misfit(Obstacle.OUTDATED, why)
    links = {hop for flow in plan.flows for hop in pairwise(flow.path)}
    nodes = set(plan.assignments.values()).union(*(flow.path for flow in plan.flows))
    residual = residual_of(tx, nodes, links)
    reason = misfit(tasks, flows, plan.assignments, plan.flows, residual, cards=plan.cards)
    return reason or application_misfit(tx, row, tasks, flows, plan.assignments, plan.flows, residual)
