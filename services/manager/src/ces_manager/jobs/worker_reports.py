"""Agents' reports of workers, and the jobs that they move on."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.reports import Status
from ces_manager.jobs import lifecycle
from ces_manager.jobs.transitions import as_member, change

_ON_NODE = (
    select(AllocationRow, JobRow.state)
    .join(JobRow, JobRow.id == AllocationRow.job)
    .where(AllocationRow.node == bindparam("node"), AllocationRow.state.in_(LIVE_STATES))
)


def matters(tx: ReadTx, status: Status) -> bool:
    """Whether a report moves anything; most do not, and lock nothing."""
    return bool(_moved_by(tx, status))


def _generation(tx: ReadTx, status: Status) -> int:
    """The generation reported; 0 where it is one of a former database."""
    return status.generation if status.epoch in ("", tx.cluster().epoch) else 0


def _moved_by(tx: ReadTx, status: Status) -> list[str]:
    generation = _generation(tx, status)
    return sorted(
        {
            row.job
            for row, state in tx.session.execute(_ON_NODE, {"node": status.node})
            if lifecycle.matters(state, as_member(row), generation, status.workers)
        }
    )


def take_report(tx: WriteTx, status: Status) -> None:
    """Move allocations and jobs on by an agent's report of its workers."""
    generation = _generation(tx, status)
    for job in _moved_by(tx, status):
        row = tx.session.get_one(JobRow, job)
        change(
            tx,
            row,
            lambda course: lifecycle.report(
                course, generation, status.workers, lambda member: member.node == status.node
            ),
        )
