"""Resumption of a suspended job where it is, once a scheduler has found free capacity for what it gave up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ces_common.db.tables import AllocationRow, JobRow
from ces_common.db.uow import WriteTx
from ces_common.jobfile import Task
from ces_common.messages.plans import PlanProposed
from ces_manager.jobs import lifecycle
from ces_manager.jobs.link_shares import reserve_links
from ces_manager.jobs.transitions import allocations_of, as_member, change
from ces_manager.plans.feasibility import Misfit, Obstacle, Residual, misfit
from ces_manager.plans.reservations import emit_revised, held_flows
from ces_manager.plans.residual import residual_of


def commit_resumption(tx: WriteTx, row: JobRow, plan: PlanProposed) -> str | None:
    """Give a suspended job back what it gave up, as the plan says. Returns the reason where that cannot be done; then
    nothing has changed."""
    allocations = allocations_of(tx, [row])[row.id]
    live = [allocation for allocation in allocations if not as_member(allocation).over]
    reason = _reason_against(tx, row, plan, allocations, live)
    if reason is not None:
        return reason
    for allocation in live:
        allocation.cpu = row.tasks[allocation.rank].cpu
    given = {(flow.src, flow.dst): flow for flow in plan.flows}
    flows = held_flows(tx, row)
    for flow in flows:
        now = given[flow.src, flow.dst]
        flow.rate, flow.path = now.rate, now.path
    reserve_links(tx, flows)
    emit_revised(tx, row, plan.plan, "resumed", flows, flows)
    if row.placed_at is not None:
        row.placed_at += tx.now - row.state_since  # its end is reckoned from there, and it did not run meanwhile
    change(tx, row, lifecycle.resume)
    return None


def _reason_against(
    tx: WriteTx,
    row: JobRow,
    plan: PlanProposed,
    allocations: Sequence[AllocationRow],
    live: Sequence[AllocationRow],
) -> str | None:
    if row.attempt != plan.attempt:
        return Misfit(Obstacle.OUTDATED, f"job {row.name} is at attempt {row.attempt}, the plan is for {plan.attempt}")
    if plan.assignments != {allocation.task: allocation.node for allocation in allocations}:
        return Misfit(Obstacle.OUTDATED, f"job {row.name} is suspended: it can only go on where it is")
    links = {hop for flow in plan.flows for hop in pairwise(flow.path)}
    nodes = {allocation.node for allocation in live}.union(*(flow.path for flow in plan.flows))
    asking = [_lacking(row.tasks[allocation.rank]) for allocation in live]
    residual = _for_present_tasks(residual_of(tx, nodes, links))
    return misfit(row.tasks, row.flows, plan.assignments, plan.flows, residual, asking=asking)


def _lacking(task: Task) -> Task:
    """The task without what it still holds, and without constraints that its node has met already."""
    return task.model_copy(update={"memory": 0, "gpu": 0, "gpu_share": 0, "gpu_models": [], "arch": None, "labels": {}})


def _for_present_tasks(residual: Residual) -> Residual:
    """Without cordons, which concern new tasks only, and without overdrawn memory and GPUs, of which none is taken."""
    nodes = {
        name: replace(node, cordoned=False, memory=max(node.memory, 0), gpu=max(node.gpu, 0))
        for name, node in residual.nodes.items()
    }
    return replace(residual, nodes=nodes)
