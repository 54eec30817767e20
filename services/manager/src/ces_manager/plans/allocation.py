"""What a committed plan hands out: allocations with addresses and ports, reservations with flow numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import BindParameter, bindparam, select
from ulid import ULID

from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, NodeRow, ReservationRow
from ces_common.db.uow import WriteTx
from ces_common.jobfile import Flow, Task
from ces_common.messages.cards import held_of
from ces_common.messages.plans import FlowPlan
from ces_common.states import AllocationState, JobState
from ces_manager.plans.addresses import WORKER_PORT, next_address, next_numbers, next_port

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
_NUMBERS = select(ReservationRow.number).where(
    ReservationRow.held, ReservationRow.number.between(bindparam("first"), bindparam("last"))
)


@dataclass(frozen=True, slots=True)
class Placement:
    """What a plan gives to one attempt of a job: task -> node, for each flow its rate and path, and task -> cards."""

    job: str
    attempt: int
    tasks: Sequence[Task]
    flows: Sequence[Flow]
    assignments: Mapping[str, str]
    given: Sequence[FlowPlan]
    cards: Mapping[str, Sequence[str]] = field(default_factory=dict)


def allocate_tasks(tx: WriteTx, placement: Placement) -> list[AllocationRow]:
    """An allocation for every task, with an address of its own or, where workers share the host's, a port."""
    names = set(placement.assignments.values())
    nodes = {node.name: node for node in tx.session.scalars(_NODES, {"names": sorted(names)})}
    hosts = {node.host_address for node in nodes.values() if node.network == "none"}
    addresses, ports = _taken(tx, names, hosts)
    cluster = tx.cluster()
    allocations = []
    for task in placement.tasks:
        node = nodes[placement.assignments[task.name]]
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
                job=placement.job,
                attempt=placement.attempt,
                task=task.name,
                rank=task.rank,
                node=node.name,
                address=address,
                port=port,
                cpu=task.cpu,
                memory=task.memory,
                gpu=task.gpu,
                cards=list(placement.cards.get(task.name, ())),
                **_share_of(task, node, placement.cards.get(task.name, ())),
                incarnation=1,
                state=AllocationState.PENDING,
            )
        )
    return allocations


def _share_of(task: Task, node: NodeRow, cards: Sequence[str]) -> dict[str, int]:
    """What the task holds of its card, if it asks for a share."""
    if not task.gpu_share:
        return {"gpu_share": 0, "gpu_memory": 0}
    card = next(each for each in node.cards if each.id == cards[0])
    share, memory = held_of(card, task.gpu_share, task.gpu_memory)
    return {"gpu_share": share, "gpu_memory": memory}


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


def reserve_flows(tx: WriteTx, placement: Placement) -> list[ReservationRow]:
    if not placement.given:
        return []
    cluster = tx.cluster()

    def held(first: int, last: int) -> Sequence[int]:
        return tx.session.scalars(_NUMBERS, {"first": first, "last": last}).all()

    numbers = next_numbers(cluster.last_flow, held, len(placement.given))
    cluster.last_flow = numbers[-1]
    given = {(flow.src, flow.dst): flow for flow in placement.given}
    return [
        ReservationRow(
            job=placement.job,
            attempt=placement.attempt,
            src=flow.src,
            dst=flow.dst,
            number=number,
            min=flow.min,
            max=flow.max,
            rate=given[flow.src, flow.dst].rate,
            path=given[flow.src, flow.dst].path,
            held=True,
        )
        for flow, number in zip(placement.flows, numbers, strict=True)
    ]
