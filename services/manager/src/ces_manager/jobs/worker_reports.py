"""Agents' reports of workers, and the jobs that they move on."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, select

from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.reports import Status
from ces_common.states import AllocationState
from ces_manager.jobs import lifecycle
from ces_manager.jobs.transitions import as_member, change

_ON_NODE = (
    select(AllocationRow, JobRow.state)
    .join(JobRow, JobRow.id == AllocationRow.job)
    .where(AllocationRow.node == bindparam("node"), AllocationRow.state.in_(LIVE_STATES))
)
_AWAY = select(NodeRow.name).where(NodeRow.state == "unreachable")


@dataclass(frozen=True, slots=True)
class News:
    """``moved``: jobs with an allocation that a report moves. ``begun``: allocations whose agent now says that it has
    been starting a worker for a while, or no longer says so."""

    moved: list[str]
    begun: dict[str, bool]


def matters(tx: ReadTx, status: Status) -> bool:
    """Whether a report says anything new; most do not, and lock nothing."""
    news = _news(tx, status)
    return bool(news.moved or news.begun)


def _generation(tx: ReadTx, status: Status) -> int:
    """The generation reported; 0 where it is one of a former database."""
    return status.generation if status.epoch in ("", tx.cluster().epoch) else 0


def _news(tx: ReadTx, status: Status) -> News:
    generation = _generation(tx, status)
    being_started = {(each.allocation, each.incarnation) for each in status.workers if each.state == "starting"}
    moved, begun = set(), {}
    for row, state in tx.session.execute(_ON_NODE, {"node": status.node}):
        if lifecycle.matters(state, as_member(row), generation, status.workers):
            moved.add(row.job)
        now = (row.id, row.incarnation) in being_started
        if row.state is AllocationState.PENDING and now != row.being_started:
            begun[row.id] = now
    return News(sorted(moved), begun)


def take_report(tx: WriteTx, status: Status) -> None:
    """Move allocations and jobs on by an agent's report of its workers."""
    generation, news = _generation(tx, status), _news(tx, status)
    for allocation, begun in news.begun.items():
        tx.session.get_one(AllocationRow, allocation).being_started = begun
    away = tx.session.scalars(_AWAY).all() if news.moved else ()
    for job in news.moved:
        row = tx.session.get_one(JobRow, job)
        change(
            tx,
            row,
            lambda course: lifecycle.report(
                course, generation, status.workers, lambda member: member.node == status.node, away
            ),
        )
