"""The spans that are kept of traced attempts: which are taken, and what is kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from ces_common.db.move_tables import MoveRow
from ces_common.db.tables import AllocationRow, JobRow, ReservationRow
from ces_common.db.trace_tables import SpanRow, span_row
from ces_common.db.uow import ReadTx
from ces_common.messages.traces import Span
from ces_common.tracing import context_of

MOST_OF_ATTEMPT: Final = 2000  # spans that are kept
MOST_OF_NODE: Final = 128  # of which one node's agent may have told
Attempt = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Told:
    """A span, and who told it: a service, or the agent of a node."""

    service: str
    node: str | None
    span: Span


def keep_spans(session: Session, told: Sequence[Told], now: datetime) -> list[Told]:
    """Keep the spans of attempts that are traced, as far as they may be told and there is room; returns those. The same
    span told again is kept once."""
    attempts = {_attempt_of(each.span) for each in told}
    traces, parties = _traces_of(session, attempts), _parties_of(session, told)
    of_attempt, of_node = _counts(session, attempts)
    kept: dict[str, Told] = {}
    for each in told:
        attempt = _attempt_of(each.span)
        if each.span.trace != traces.get(attempt) or (each.node is not None and each.node not in parties[attempt]):
            continue
        if of_attempt[attempt] >= MOST_OF_ATTEMPT or of_node[attempt, each.node] >= MOST_OF_NODE:
            continue
        of_attempt[attempt] += 1
        of_node[attempt, each.node] += each.node is not None
        kept[f"{attempt}.{each.span.span}"] = each
    if kept:
        insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
        rows = [span_row(each.service, each.node, each.span, now) for each in kept.values()]
        session.execute(insert(SpanRow).on_conflict_do_nothing(index_elements=["id"]), rows)
    return list(kept.values())


def spans_of(tx: ReadTx, job: str, attempt: int) -> list[SpanRow]:
    """In the order in which they began."""
    query = select(SpanRow).where(SpanRow.job == job, SpanRow.attempt == attempt)
    return list(tx.session.scalars(query.order_by(SpanRow.start_us, SpanRow.id)))


def _attempt_of(span: Span) -> Attempt:
    return span.job or "", span.attempt


def _traces_of(session: Session, attempts: Iterable[Attempt]) -> dict[Attempt, str]:
    """The trace of each attempt: of a former one, that of which something was kept before."""
    jobs = {job for job, _ in attempts}
    found: dict[Attempt, str] = {}
    columns = (SpanRow.job, SpanRow.attempt, func.min(SpanRow.trace))
    former = select(*columns).where(SpanRow.job.in_(jobs)).group_by(SpanRow.job, SpanRow.attempt)
    for job, attempt, trace in session.execute(former):
        found[job, attempt] = trace
    for job, attempt, stored in session.execute(
        select(JobRow.id, JobRow.attempt, JobRow.traceparent).where(JobRow.id.in_(jobs))
    ):
        context = context_of(stored)
        if context is not None:
            found[job, attempt] = context[0]
    return found


def _parties_of(session: Session, told: Sequence[Told]) -> dict[Attempt, set[str]]:
    """The nodes with a part in the attempts of which agents tell: a task, or a hop of a reserved flow."""
    jobs = {each.span.job for each in told if each.node is not None}
    parties: dict[Attempt, set[str]] = defaultdict(set)
    if jobs:
        of = AllocationRow
        for job, attempt, node in session.execute(select(of.job, of.attempt, of.node).where(of.job.in_(jobs))):
            parties[job, attempt].add(node)
        moves = MoveRow
        for job, attempt, *ends in session.execute(
            select(moves.job, moves.attempt, moves.source, moves.destination).where(moves.job.in_(jobs))
        ):
            parties[job, attempt].update(ends)
        flows = ReservationRow
        for job, attempt, path in session.execute(
            select(flows.job, flows.attempt, flows.path).where(flows.job.in_(jobs))
        ):
            parties[job, attempt].update(path)
    return parties


def _counts(
    session: Session, attempts: Iterable[Attempt]
) -> tuple[Counter[Attempt], Counter[tuple[Attempt, str | None]]]:
    """How many spans are kept of each attempt, and by whom."""
    columns = (SpanRow.job, SpanRow.attempt, SpanRow.node, func.count())
    query = select(*columns).where(SpanRow.job.in_({job for job, _ in attempts}))
    of_attempt, of_node = Counter[Attempt](), Counter[tuple[Attempt, str | None]]()
    for job, attempt, node, count in session.execute(query.group_by(SpanRow.job, SpanRow.attempt, SpanRow.node)):
        of_attempt[job, attempt] += count
        of_node[(job, attempt), node] += count if node is not None else 0
    return of_attempt, of_node
