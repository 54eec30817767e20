"""The size that a malleable job goes to: what is held for it is of the next attempt, and is in use once nothing of the
present one is left. Until then each row holds only what goes beyond what the job has anyway, so nothing counts
twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeVar

from sqlalchemy import delete, select

from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, PlanRow, ReservationRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.plans import ResizeEnded
from ces_manager.jobs.link_shares import release_links, reserve_links, take_links

K = TypeVar("K", bound=Hashable)
RESOURCES: Final = ("cpu", "memory", "gpu")


def beyond(asked: Iterable[tuple[K, int]], held: Mapping[K, int]) -> list[int]:
    """For each amount asked for, in order, what goes beyond what is held under the same key."""
    left, found = Counter(held), []
    for key, amount in asked:
        covered = min(amount, left[key])
        left[key] -= covered
        found.append(amount - covered)
    return found


def begin_small(row: JobRow) -> None:
    """A malleable job that waits asks for no more than its smallest size."""
    elastic = None if row.size is None else row.spec.elastic
    if elastic is not None and row.size != elastic.smallest:
        sized = row.spec.at_size(elastic.smallest)
        row.tasks, row.flows, row.size = sized.expand_tasks(), sized.expand_flows(), elastic.smallest


def next_allocations(tx: ReadTx, row: JobRow) -> Sequence[AllocationRow]:
    """In rank order."""
    query = select(AllocationRow).where(AllocationRow.job == row.id, AllocationRow.attempt == row.attempt + 1)
    return tx.session.scalars(query.order_by(AllocationRow.rank)).all()


def next_reservations(tx: ReadTx, row: JobRow) -> Sequence[ReservationRow]:
    """In order of their numbers."""
    return _reservations(tx, row.id, row.attempt + 1)


def held_of_nodes(tx: ReadTx, row: JobRow) -> Counter[tuple[str, str]]:
    """What the present attempt holds, by node and resource."""
    held = Counter[tuple[str, str]]()
    present = (AllocationRow.job == row.id) & (AllocationRow.attempt == row.attempt)
    for allocation in tx.session.scalars(select(AllocationRow).where(present, AllocationRow.state.in_(LIVE_STATES))):
        for resource in RESOURCES:
            held[allocation.node, resource] += getattr(allocation, resource)
    return held


def held_cards(tx: ReadTx, row: JobRow) -> set[tuple[str, str]]:
    """Node and id of each card that the present attempt holds."""
    live = (AllocationRow.job == row.id) & (AllocationRow.attempt == row.attempt) & AllocationRow.state.in_(LIVE_STATES)
    rows = tx.session.execute(select(AllocationRow.node, AllocationRow.cards).where(live))
    return {(node, card) for node, cards in rows for card in cards}


def hold_nodes(tx: WriteTx, row: JobRow, allocations: Sequence[AllocationRow]) -> None:
    """Let the next attempt's allocations hold what goes beyond what is left of the present one. Called again whenever
    some of that is gone, so that nobody else gets it in between."""
    tasks = row.spec.at_size(row.next_size or 0).expand_tasks()
    held = held_of_nodes(tx, row)
    for resource in RESOURCES:
        asked = [((each.node, resource), getattr(tasks[each.rank], resource)) for each in allocations]
        for allocation, amount in zip(allocations, beyond(asked, held), strict=True):
            setattr(allocation, resource, amount)
    present = held_cards(tx, row)
    for each in allocations:
        if each.cards:  # it needs these, and not just as many
            each.gpu = sum((each.node, card) not in present for card in each.cards)


def hold_links(tx: WriteTx, flows: Sequence[ReservationRow], held: Mapping[tuple[str, str], int]) -> None:
    """Let the next attempt's flows hold what goes beyond what the present ones hold of each link."""
    asked = [(flow.number, hop, flow.rate) for flow in flows for hop in pairwise(flow.path)]
    rates = beyond([(hop, rate) for _, hop, rate in asked], held)
    take_links(tx, [(number, hop, rate) for (number, hop, _), rate in zip(asked, rates, strict=True)])


def take_over(tx: WriteTx, row: JobRow) -> Sequence[AllocationRow]:
    """Let the job have its next size, since nothing of the present attempt is left. Returns the new allocations."""
    assert row.next_size is not None
    former = _reservations(tx, row.id, row.attempt)
    release_links(tx, former)
    for flow in former:
        flow.held = False
    tx.session.flush()  # a number is free before another flow may have it
    sized = row.spec.at_size(row.next_size)
    row.tasks, row.flows = sized.expand_tasks(), sized.expand_flows()
    allocations = next_allocations(tx, row)
    for allocation in allocations:
        task = row.tasks[allocation.rank]
        allocation.cpu, allocation.memory, allocation.gpu = task.cpu, task.memory, task.gpu
    flows = next_reservations(tx, row)
    release_links(tx, flows)
    reserve_links(tx, flows)
    row.attempt, row.size = row.attempt + 1, row.next_size
    row.checkpoint_node = allocations[0].node
    _end(tx, row, done=True)
    return allocations


def give_up(tx: WriteTx, row: JobRow) -> None:
    """Give back what was held for the next size. None of it ever ran, so nothing of it stays as history."""
    release_links(tx, next_reservations(tx, row))
    for table in (ReservationRow, AllocationRow, PlanRow):
        tx.session.execute(delete(table).where(table.job == row.id, table.attempt == row.attempt + 1))
    _end(tx, row, done=False)


def _reservations(tx: ReadTx, job: str, attempt: int) -> Sequence[ReservationRow]:
    query = select(ReservationRow).where(ReservationRow.job == job, ReservationRow.attempt == attempt)
    return tx.session.scalars(query.order_by(ReservationRow.number)).all()


def _end(tx: WriteTx, row: JobRow, *, done: bool) -> None:
    assert row.resize is not None
    attempt = row.attempt if done else row.attempt + 1
    ended = ResizeEnded(resize=row.resize, job=row.id, attempt=attempt, done=done)
    tx.emit("resize", "ended", row.resize, ended, job=row.id)
    row.next_size, row.resize = None, None
