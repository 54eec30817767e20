"""Agents' reports of workers, and the jobs that they move on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import bindparam, select

from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.reports import Status
from ces_common.states import AllocationState
from ces_manager.jobs import lifecycle
from ces_manager.jobs.checkpoints import first_runs
from ces_manager.jobs.cpu_amounts import gave_up, release_cpu
from ces_manager.jobs.lifecycle import Course, Member
from ces_manager.jobs.transitions import allocations_of, as_member, change
from ces_manager.text import storable

# Columns, not rows to be changed: of most reports nothing follows.
_ON_NODES = (
    select(
        AllocationRow.id,
        AllocationRow.job,
        AllocationRow.task,
        AllocationRow.node,
        AllocationRow.state,
        AllocationRow.incarnation,
        AllocationRow.stopping_since,
        AllocationRow.exit_code,
        AllocationRow.reason,
        AllocationRow.being_started,
        AllocationRow.waits,
        AllocationRow.cpu,
        AllocationRow.cpu_desired,
        AllocationRow.cpu_since,
        JobRow.state.label("job_state"),
    )
    .join(JobRow, JobRow.id == AllocationRow.job)
    .where(AllocationRow.node.in_(bindparam("nodes", expanding=True)), AllocationRow.state.in_(LIVE_STATES))
)
_RAN = frozenset({"running", "paused", "exited"})
_WITH_WORKER = frozenset({AllocationState.PENDING, AllocationState.RUNNING})
_AWAY = select(NodeRow.name).where(NodeRow.state == "unreachable")


@dataclass(frozen=True, slots=True)
class News:
    """What one report says that is new. ``moved``: jobs with an allocation that it moves. ``begun``: allocations whose
    agent now says that it has been starting a worker for a while, or no longer says so. ``waits``: what their agent now
    says that such a start waits for. ``gave_up``: allocations whose workers now have no more CPU than they are to have.
    ``reclaimed``: whether a worker that it moves was ended by the device's owner."""

    status: Status
    generation: int
    reclaimed: bool
    moved: set[str] = field(default_factory=set)
    begun: dict[str, bool] = field(default_factory=dict)
    waits: dict[str, str | None] = field(default_factory=dict)
    gave_up: list[str] = field(default_factory=list)


def with_news(tx: ReadTx, statuses: Sequence[Status]) -> list[Status]:
    """The reports that say anything new, of which each is another node's; most do not, and lock nothing."""
    return [news.status for news in _news(tx, statuses)]


def take_reports(tx: WriteTx, statuses: Sequence[Status]) -> set[str]:
    """Move allocations and jobs on by agents' reports of their workers. A job is moved on once, by all that is said of
    it. Returns the nodes that say with that that their owners have them."""
    found = _news(tx, statuses)
    moved: dict[str, list[News]] = defaultdict(list)
    for news in found:
        for allocation, begun in news.begun.items():
            tx.session.get_one(AllocationRow, allocation).being_started = begun
        for allocation, what in news.waits.items():
            tx.session.get_one(AllocationRow, allocation).waits = what
        for allocation in news.gave_up:
            release_cpu(tx, allocation)
        for job in news.moved:
            moved[job].append(news)
    away = tx.session.scalars(_AWAY).all() if any(map(_tells_of_failure, found)) else ()
    for job in sorted(moved):
        row = tx.session.get_one(JobRow, job)
        if row.checkpoints.restoring and _has_begun(allocations_of(tx, [row])[job][0], moved[job]):
            first_runs(row)
            row.version = tx.version
        change(tx, row, partial(_report_all, moved[job], away))
    return {news.status.node for news in found if news.reclaimed}


def _has_begun(first: AllocationRow, reports: Sequence[News]) -> bool:
    """Whether the first task has run where it is, if only for a while that nobody heard of."""
    return any(
        worker.state in _RAN and (worker.allocation, worker.incarnation) == (first.id, first.incarnation)
        for news in reports
        if news.status.node == first.node
        for worker in news.status.workers
    )


def _tells_of_failure(news: News) -> bool:
    return any(worker.state == "exited" and worker.exit_code != 0 for worker in news.status.workers)


def _tells_of_leaving(news: News) -> bool:
    return any(worker.reclaimed or worker.lapsed for worker in news.status.workers)


def _report_all(reports: Sequence[News], away: Collection[str], course: Course) -> None:
    """Where a worker fails because another one's node has left, the failure is no reason of its own."""
    for news in sorted(reports, key=_tells_of_leaving, reverse=True):
        lifecycle.report(course, news.generation, news.status.workers, partial(_is_on, news.status.node), away)


def _is_on(node: str, member: Member) -> bool:
    return member.node == node


def _news(tx: ReadTx, statuses: Sequence[Status]) -> list[News]:
    """Of the reports that say something new, what that is."""
    live: dict[str, list[Any]] = defaultdict(list)
    for row in tx.session.connection().execute(_ON_NODES, {"nodes": [status.node for status in statuses]}):
        live[row.node].append(row)
    found = [_news_of(tx, status, live[status.node]) for status in statuses if status.node in live]
    return [news for news in found if news.moved or news.begun or news.waits or news.gave_up]


def _news_of(tx: ReadTx, status: Status, allocations: Sequence[Any]) -> News:
    ended = {
        (each.allocation, each.incarnation) for each in status.workers if each.state == "exited" and each.reclaimed
    }
    reclaimed = any(
        (row.id, row.incarnation) in ended and row.state is not AllocationState.STOPPING for row in allocations
    )
    news = News(status, _generation(tx, status), reclaimed)
    being_started = {
        (each.allocation, each.incarnation): each.reason for each in status.workers if each.state == "starting"
    }
    for row in allocations:
        if lifecycle.matters(row.job_state, as_member(row), news.generation, status.workers):
            news.moved.add(row.job)
        if row.state in _WITH_WORKER and gave_up(row, news.generation, status.workers):
            news.gave_up.append(row.id)
        if row.state is not AllocationState.PENDING:
            continue
        now = (row.id, row.incarnation) in being_started
        if now != row.being_started:
            news.begun[row.id] = now
        reason = being_started.get((row.id, row.incarnation))
        told = None if reason is None else storable(reason, lifecycle.MAX_REASON)
        if told != row.waits:
            news.waits[row.id] = told
    return news


def _generation(tx: ReadTx, status: Status) -> int:
    """The generation reported; 0 where it is one of a former database."""
    return status.generation if status.epoch in ("", tx.cluster().epoch) else 0
