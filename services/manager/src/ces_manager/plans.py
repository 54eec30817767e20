"""A scheduler's proposals: commit all of a plan or none of it."""

from __future__ import annotations

from sqlalchemy import BindParameter, bindparam, select
from ulid import ULID

from ces_common.db.tables import (
    LIVE_STATES,
    AllocationRow,
    JobRow,
    NodeRow,
    PlanRow,
    ReservationRow,
)
from ces_common.db.uow import WriteTx
from ces_common.messages.events import JobWaiting, PlanCommitted, PlanProposed, PlanRefused, PlanRejected
from ces_common.states import JOB_WAITS, AllocationState, JobState
from ces_manager.addressing import WORKER_PORT, Exhausted, next_address, next_numbers, next_port
from ces_manager.capacity import hops, misfit
from ces_manager.changes import change, emit_allocation, emit_job
from ces_manager.holding import take_links
from ces_manager.lifecycle import Course
from ces_manager.records import allocation_record, flow_record
from ces_manager.resuming import commit_resumption
from ces_manager.room import room_for
from ces_manager.standings import named, promise

_IN_NAMES: BindParameter[str] = bindparam("names", expanding=True)
_NODES = select(NodeRow).where(NodeRow.name.in_(_IN_NAMES))
_USED = select(AllocationRow.address, AllocationRow.port).where(
    AllocationRow.state.in_(LIVE_STATES), AllocationRow.node.in_(_IN_NAMES)
)
# A worker that is done gives its capacity back, but its address stays in its job's network until that goes as a whole.
_NETWORKED = (
    select(AllocationRow.address)
    .join(JobRow, (JobRow.id == AllocationRow.job) & (JobRow.attempt == AllocationRow.attempt))
    .where(
        JobRow.live,
        JobRow.state != JobState.QUEUED,
        AllocationRow.state.not_in(LIVE_STATES),
        AllocationRow.node.in_(_IN_NAMES),
    )
)
_NUMBERS = select(ReservationRow.number).where(ReservationRow.held)


def commit_plan(tx: WriteTx, plan: PlanProposed) -> str | None:
    """Make a plan true where it fits what is committed now; otherwise reject it, with the reason, which is returned.
    A rejected plan changes nothing: its job stays as it is."""
    row = tx.session.get(JobRow, plan.job) if len(plan.job) <= 26 else None
    if row is None:
        return _reject(tx, None, plan, f"no job {plan.job}")
    act = commit_resumption if row.state is JobState.SUSPENDED else _place
    reason = act(tx, row, plan)
    if reason is not None:
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
    """Give a queued job its place; or the reason why not, and then nothing changes."""
    reason = _reason_against(tx, row, plan)
    if reason is not None:
        return reason
    try:
        allocations = _allocate(tx, row, plan)
        reservations = _reserve(tx, row, plan)
    except Exhausted as error:
        return str(error)
    tx.session.add_all([*allocations, *reservations])
    take_links(tx, reservations)
    committed = PlanCommitted(
        plan=plan.plan,
        job=row.id,
        attempt=row.attempt,
        solver=plan.solver,
        metrics=plan.metrics,
        allocations=[allocation_record(allocation) for allocation in allocations],
        flows=[flow_record(flow) for flow in reservations],
    )
    tx.emit("plan", "committed", plan.plan, committed, job=row.id)
    row.waiting, row.standing, row.reason = None, None, None
    row.state, row.state_since = JobState.PLANNED, tx.now
    row.placed_at = tx.now
    row.version = tx.version
    emit_job(tx, row, JobState.QUEUED)
    for allocation in allocations:
        emit_allocation(tx, row.id, allocation, None)
    return None


def refuse_plan(tx: WriteTx, refused: PlanRefused) -> None:
    """Note why the scheduler found no place, where that is news."""
    row = tx.session.get(JobRow, refused.job) if len(refused.job) <= 26 else None
    if row is None or row.state not in JOB_WAITS or row.attempt != refused.attempt:
        return
    if row.waiting == refused.reason and promise(row.standing) == promise(refused.standing):
        return
    row.waiting, row.standing = refused.reason, refused.standing
    row.version = tx.version
    standing = None if refused.standing is None else named(tx, [refused.standing])[0]
    waiting = JobWaiting(job=row.id, name=row.name, reason=refused.reason, standing=standing)
    tx.emit("job", "waiting", row.id, waiting, job=row.id)


def network_preparing(tx: WriteTx, job: str, attempt: int) -> None:
    """The attempt's network is with the agents."""
    _network(tx, job, attempt, {JobState.PLANNED: [JobState.PREPARING]})


def network_ready(tx: WriteTx, job: str, attempt: int) -> None:
    """The attempt's network is in place, so that its workers may start."""
    both = [JobState.PREPARING, JobState.STARTING]
    _network(tx, job, attempt, {JobState.PLANNED: both, JobState.PREPARING: both[1:]})


def _network(tx: WriteTx, job: str, attempt: int, steps: dict[JobState, list[JobState]]) -> None:
    row = tx.session.get(JobRow, job) if len(job) <= 26 else None
    if row is None or row.attempt != attempt:
        return

    def walk(course: Course) -> None:
        for state in steps.get(course.state, []):
            course.move(state)

    change(tx, row, walk)


def _reason_against(tx: WriteTx, row: JobRow, plan: PlanProposed) -> str | None:
    if row.state is not JobState.QUEUED:
        return f"job {row.name} is {row.state.value}, not queued"
    if row.attempt != plan.attempt:
        return f"job {row.name} is at attempt {row.attempt}, the plan is for {plan.attempt}"
    links = {hop for flow in plan.flows for hop in hops(flow.path)}
    nodes = set(plan.assignments.values()).union(*(flow.path for flow in plan.flows))
    return misfit(row.tasks, row.flows, plan.assignments, plan.flows, room_for(tx, nodes, links))


def _allocate(tx: WriteTx, row: JobRow, plan: PlanProposed) -> list[AllocationRow]:
    """An allocation for every task, with an address of its own or, where workers share the host's, a port."""
    names = set(plan.assignments.values())
    nodes = {node.name: node for node in tx.session.scalars(_NODES, {"names": sorted(names)})}
    hosts = {node.host_address for node in nodes.values() if node.network == "none"}
    addresses, ports = _taken(tx, names, hosts)
    cluster = tx.cluster()
    allocations = []
    for task in row.tasks:
        node = nodes[plan.assignments[task.name]]
        if node.network == "none":
            address, port = node.host_address, next_port(cluster.last_port, ports)
            ports.add(port)
            cluster.last_port = port
        else:
            address, node.last_host = next_address(node.subnet, node.last_host, addresses)
            addresses.add(address)
            port = WORKER_PORT
        allocations.append(
            AllocationRow(
                id=str(ULID()),
                job=row.id,
                attempt=row.attempt,
                task=task.name,
                rank=task.rank,
                node=node.name,
                address=address,
                port=port,
                cpu=task.cpu,
                memory=task.memory,
                gpu=task.gpu,
                incarnation=1,
                state=AllocationState.PENDING,
            )
        )
    return allocations


def _taken(tx: WriteTx, nodes: set[str], hosts: set[str]) -> tuple[set[str], set[int]]:
    """Worker addresses in use on the nodes, and ports in use on the shared host addresses."""
    on_nodes = tx.session.execute(_USED, {"names": list(nodes)})
    addresses = {address for address, _ in on_nodes}
    addresses.update(tx.session.scalars(_NETWORKED, {"names": list(nodes)}))
    if not hosts:
        return addresses, set()
    sharing = tx.session.scalars(select(NodeRow.name).where(NodeRow.host_address.in_(hosts))).all()
    on_hosts = tx.session.execute(_USED, {"names": sharing})
    return addresses, {port for address, port in on_hosts if address in hosts}


def _reserve(tx: WriteTx, row: JobRow, plan: PlanProposed) -> list[ReservationRow]:
    if not plan.flows:
        return []
    cluster = tx.cluster()
    taken = tx.session.scalars(_NUMBERS).all()
    numbers = next_numbers(cluster.last_flow, taken, len(plan.flows))
    cluster.last_flow = numbers[-1]
    given = {(flow.src, flow.dst): flow for flow in plan.flows}
    return [
        ReservationRow(
            job=row.id,
            attempt=row.attempt,
            src=flow.src,
            dst=flow.dst,
            number=number,
            min=flow.min,
            max=flow.max,
            bandwidth=given[flow.src, flow.dst].bandwidth,
            path=given[flow.src, flow.dst].path,
            held=True,
        )
        for flow, number in zip(row.flows, numbers, strict=True)
    ]
