"""Nodes whose devices have owners: taken back, and lent again. A node says so of itself alone, and it is for its agent
to give the device back: here its jobs are placed elsewhere, and no others come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ces_common.db.tables import NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.reports import Status
from ces_common.rates import SenderRate
from ces_manager.errors import Conflict
from ces_manager.jobs import lifecycle, worker_reports
from ces_manager.jobs.transitions import change_on
from ces_manager.nodes.rows import emit_node, jobs_on, node_row

ANSWER_S = 5.0  # for an agent's answer
LOANS_PER_S, LOANS_AT_ONCE = 0.1, 6


class Loans:
    """Which changes that nodes tell of are taken in. A reclaim always is; a loan not too often, so that a node that
    goes to and fro keeps jobs away rather than moving them about. In memory: a manager that starts again is lenient."""

    def __init__(self) -> None:
        self._rate = SenderRate(LOANS_PER_S, LOANS_AT_ONCE)

    def takes(self, node: str, *, known: bool, told: bool, now: float) -> bool:
        """``known``, ``told``: whether the node is reclaimed, by the database and by its agent."""
        return told is not known and (told or self._rate.allows(node, now))


def take_news(tx: WriteTx, reclaimed: Mapping[str, bool]) -> None:
    """``reclaimed``: node -> whether its owner has the device. One may be gone since: another transaction forgot it."""
    for name, told in sorted(reclaimed.items()):
        row = tx.session.get(NodeRow, name)
        if row is None or row.reclaimed is told:
            continue
        row.reclaimed, row.version = told, tx.version
        emit_node(tx, row, "reclaimed" if told else "lent")
        for job in jobs_on(tx, name) if told else ():
            why = lifecycle.reclaimed(name)
            walk = partial(lifecycle.reschedule, cause=lifecycle.Cause.RECLAIMED, reason=why)
            change_on(tx, job, name, walk, why, lost=False)


def take_reports(tx: WriteTx, statuses: Sequence[Status]) -> None:
    """Of workers. A node that says of one that its owner has ended it is reclaimed, whatever its heartbeats say: no
    task comes until a loan is taken in, so jobs leave it no more often."""
    take_news(tx, dict.fromkeys(worker_reports.take_reports(tx, statuses), True))


def check_reachable(tx: ReadTx, node: str) -> None:
    """Raises NotFound, Conflict."""
    if node_row(tx, node).state != "ready":
        remedy = "on the device itself, ces-agent reclaim works without a manager"
        raise Conflict(f"node {node} is unreachable, so it cannot be told: {remedy}")
