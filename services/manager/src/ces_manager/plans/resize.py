"""Commit of a proposed resize: a running malleable job gets everything that it needs at another size, or nothing.

What is added is held from now on, beside all that the job still has. Then its workers are told to end; once nothing of
them is left, the new size is in use (``jobs.next_size``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from ces_common.db.tables import AllocationRow, JobRow, PlanRow, ReservationRow
from ces_common.db.uow import WriteTx
from ces_common.messages.plans import ResizeCommitted, ResizeProposed, ResizeRejected
from ces_common.states import AllocationState, JobState
from ces_manager.jobs import lifecycle
from ces_manager.jobs.next_size import RESOURCES, held_of_nodes, hold_links, hold_nodes
from ces_manager.jobs.records import allocation_record, flow_record
from ces_manager.jobs.speed_notes import latest_speeds
from ces_manager.jobs.transitions import allocations_of, change
from ces_manager.plans.addresses import Exhausted
from ces_manager.plans.allocation import Placement, allocate_tasks, reserve_flows
from ces_manager.plans.feasibility import Hop, Residual, misfit
from ces_manager.plans.proposal import Refused, Stale, job_at
from ces_manager.plans.reservations import held_flows
from ces_manager.plans.residual import residual_of
from ces_manager.speed_meter import SpeedMeter


@dataclass(frozen=True)
class _Own:
    """What the job holds: ``nodes`` by node and resource, ``links`` in bit/s."""

    nodes: Counter[tuple[str, str]]
    links: Counter[Hop]


def commit_resize(tx: WriteTx, proposal: ResizeProposed, meter: SpeedMeter) -> str | None:
    """Commit a resize that fits beside everything else that is held; reject any other, and return the reason. What the
    job has told by now is noted: it tells nothing more until it runs again."""
    try:
        row = _resizable(tx, proposal)
        speeds = latest_speeds(tx, row.id, meter)
        sized = row.spec.at_size(proposal.size)
        tasks, flows = sized.expand_tasks(), sized.expand_flows()
        own = _own(tx, row)
        residual = _residual(tx, row, proposal, own)
        reason = misfit(tasks, flows, proposal.assignments, proposal.flows, residual, cards=proposal.cards)
        if reason is not None:
            raise Refused(reason)
        placement = Placement(
            row.id, row.attempt + 1, tasks, flows, proposal.assignments, proposal.flows, proposal.cards
        )
        allocations, reservations = allocate_tasks(tx, placement), reserve_flows(tx, placement)
    except (Refused, Exhausted) as error:
        rejected = ResizeRejected(
            resize=proposal.resize,
            job=proposal.job,
            attempt=proposal.attempt,
            reason=str(error),
            stale=isinstance(error, Stale),
        )
        tx.emit("resize", "rejected", proposal.resize, rejected)
        return rejected.reason
    _hold(tx, row, proposal, allocations, reservations, own)
    why = f"goes from {row.size} to {proposal.size} {row.spec.elastic.group if row.spec.elastic else 'tasks'}"
    if speeds is not None:
        row.speeds = speeds
    change(tx, row, partial(lifecycle.resize, reason=why))
    return None


def _resizable(tx: WriteTx, proposal: ResizeProposed) -> JobRow:
    """Raises Refused, Stale."""
    row = job_at(tx, proposal.job, proposal.attempt, proposal.version)
    elastic = row.spec.elastic
    if elastic is None:
        raise Refused(f"job {row.name} is not malleable: its file has no elastic")
    if proposal.size not in elastic.allowed:
        raise Refused(f"job {row.name} has no size {proposal.size}")
    if row.state is not JobState.RUNNING:
        raise Stale(f"job {row.name} is {row.state.value}; only a running job can be resized")
    if proposal.size == row.size:
        raise Refused(f"job {row.name} has this size already")
    allocations = allocations_of(tx, [row])[row.id]
    if any(allocation.state is not AllocationState.RUNNING for allocation in allocations):
        raise Stale(f"not every task of job {row.name} runs")
    first = allocations[0]
    if proposal.assignments.get(first.task, first.node) != first.node:
        raise Refused(f"{first.task} of job {row.name} must stay on node {first.node}, where the checkpoints lie")
    return row


def _own(tx: WriteTx, row: JobRow) -> _Own:
    own = _Own(held_of_nodes(tx, row), Counter())
    for flow in held_flows(tx, row):
        for hop in pairwise(flow.path):
            own.links[hop] += flow.rate
    return own


def _residual(tx: WriteTx, row: JobRow, proposal: ResizeProposed, own: _Own) -> Residual:
    """What the job can have of nodes and links: what is left, and what it holds itself. Of a medium it gets back only
    what it goes on holding on the same link, since both sizes are held for a while."""
    asked = Counter[Hop]()
    for flow in proposal.flows:
        for hop in pairwise(flow.path):
            asked[hop] += flow.rate
    touched = set(proposal.assignments.values()).union(*(flow.path for flow in proposal.flows))
    left = residual_of(tx, touched, asked.keys(), but=row.id)
    nodes = {
        name: replace(node, **{each: getattr(node, each) + own.nodes[name, each] for each in RESOURCES})
        for name, node in left.nodes.items()
    }
    links, media = dict(left.links), dict(left.media)
    for hop, link in left.links.items():
        links[hop] = replace(link, bandwidth=link.bandwidth + own.links[hop])
        if link.medium is not None:
            media[link.medium] += min(asked[hop], own.links[hop])
    return Residual(nodes, links, media)


def _hold(
    tx: WriteTx,
    row: JobRow,
    proposal: ResizeProposed,
    allocations: Sequence[AllocationRow],
    reservations: Sequence[ReservationRow],
    own: _Own,
) -> None:
    """Hold what goes beyond what the job holds anyway, and say so."""
    committed = ResizeCommitted(
        resize=proposal.resize,
        job=row.id,
        attempt=row.attempt + 1,
        before=row.size or 0,
        size=proposal.size,
        allocations=[allocation_record(allocation) for allocation in allocations],
        flows=[flow_record(flow) for flow in reservations],
    )
    tx.emit("resize", "committed", proposal.resize, committed, job=row.id)
    row.next_size, row.resize = proposal.size, proposal.resize
    tx.session.add_all([*allocations, *reservations])
    hold_nodes(tx, row, allocations)
    hold_links(tx, reservations, own.links)
    tx.session.add(
        PlanRow(
            id=proposal.resize,
            job=row.id,
            attempt=row.attempt + 1,
            solver=proposal.solver,
            version=tx.version,
            committed_at=tx.now,
            metrics=proposal.metrics,
            considered=proposal.considered,
            assignments=proposal.assignments,
            flows=proposal.flows,
        )
    )
