"""A suspended job goes on where it is, as soon as a scheduler has found room for what it gave up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ces_common.db.tables import AllocationRow, JobRow
from ces_common.db.uow import WriteTx
from ces_common.jobfile import Task
from ces_common.messages.events import PlanProposed
from ces_manager import lifecycle
from ces_manager.capacity import Room, hops, misfit
from ces_manager.changes import allocations_of, as_member, change
from ces_manager.holding import emit_revised, held_flows, take_links
from ces_manager.room import room_for


def commit_resumption(tx: WriteTx, row: JobRow, plan: PlanProposed) -> str | None:
    """Give a suspended job what it gave up, as the plan says; or the reason why not, and then nothing changes."""
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
        flow.bandwidth, flow.path = now.bandwidth, now.path
    take_links(tx, flows)
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
        return f"job {row.name} is at attempt {row.attempt}, the plan is for {plan.attempt}"
    if plan.assignments != {allocation.task: allocation.node for allocation in allocations}:
        return f"job {row.name} is suspended: it can only go on where it is"
    links = {hop for flow in plan.flows for hop in hops(flow.path)}
    nodes = {allocation.node for allocation in live}.union(*(flow.path for flow in plan.flows))
    asking = [_lacking(row.tasks[allocation.rank]) for allocation in live]
    room = _for_who_is_there(room_for(tx, nodes, links))
    return misfit(row.tasks, row.flows, plan.assignments, plan.flows, room, asking=asking)


def _lacking(task: Task) -> Task:
    """What a frozen task does not hold, and need not be asked again."""
    return task.model_copy(update={"memory": 0, "gpu": 0, "arch": None, "labels": {}})


def _for_who_is_there(room: Room) -> Room:
    """A cordon is against new work, and memory that is overdrawn does not concern who takes no more of it."""
    nodes = {
        name: replace(node, cordoned=False, memory=max(node.memory, 0), gpu=max(node.gpu, 0))
        for name, node in room.nodes.items()
    }
    return replace(room, nodes=nodes)
