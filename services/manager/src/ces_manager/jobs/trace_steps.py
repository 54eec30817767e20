"""The manager's own steps of a traced attempt, each a span that ends with its transaction."""

from __future__ import annotations

from ces_common.db.tables import JobRow
from ces_common.db.uow import WriteTx
from ces_common.messages.traces import SpanKind
from ces_common.tracing import OpenSpan, root, same_trace, span


def begin_trace(tx: WriteTx, row: JobRow) -> None:
    """A job that was traced is at another attempt, which has a trace of its own."""
    if row.traceparent is None:
        return
    begun = root("queue again", job=row.id, attempt=row.attempt, links=[row.traceparent])
    _go_on(tx, row, begun)


def trace_step(tx: WriteTx, row: JobRow, name: str) -> None:
    """From now on the attempt's events belong to this step. It follows from the message that the transaction acts on,
    where that is of the same trace, and from the step before otherwise."""
    if row.traceparent is None:
        return
    parent = tx.cause if tx.cause is not None and same_trace(tx.cause, row.traceparent) else row.traceparent
    kind: SpanKind = "internal" if parent == row.traceparent else "consumer"
    _go_on(tx, row, span(name, parent, job=row.id, attempt=row.attempt, kind=kind))


def refuse_step(tx: WriteTx, row: JobRow | None, name: str, reason: str) -> None:
    """A step that leads no further."""
    if row is not None and row.traceparent is not None and same_trace(tx.cause, row.traceparent):
        refused = span(name, tx.cause or "", job=row.id, attempt=row.attempt, kind="consumer", refused=reason)
        tx.spans.append(refused)


def _go_on(tx: WriteTx, row: JobRow, begun: OpenSpan) -> None:
    tx.spans.append(begun)
    row.traceparent = begun.traceparent
