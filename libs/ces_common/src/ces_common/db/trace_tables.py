"""What services did for traced jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from ces_common.db.tables import ID, Base
from ces_common.db.types import Json, UtcTime
from ces_common.messages.traces import Attribute, Span


class SpanRow(Base):
    """What a service did for a traced attempt, as it told. ``id``: ``<job>.<attempt>.<span>``; ``node``: of an agent,
    the one whose credential it was told with. Times in microseconds, ``start_us`` since 1970, by that machine's clock.
    """

    __tablename__ = "spans"
    __table_args__ = (Index("ix_spans_job_attempt", "job", "attempt"),)
    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    job: Mapped[str] = mapped_column(ID, ForeignKey("jobs.id", ondelete="CASCADE"))
    attempt: Mapped[int] = mapped_column(Integer)
    trace: Mapped[str] = mapped_column(String(32))
    span: Mapped[str] = mapped_column(String(16))
    parent: Mapped[str | None] = mapped_column(String(16))
    service: Mapped[str] = mapped_column(String(16))
    node: Mapped[str | None] = mapped_column(String(63))
    name: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(8))
    start_us: Mapped[int] = mapped_column(BigInteger)
    duration_us: Mapped[int] = mapped_column(BigInteger)
    attributes: Mapped[dict[str, Attribute]] = mapped_column(Json(dict[str, Attribute]))
    links: Mapped[list[str]] = mapped_column(Json(list[str]))
    received_at: Mapped[datetime] = mapped_column(UtcTime, index=True)


def span_row(service: str, node: str | None, span: Span, now: datetime) -> dict[str, Any]:
    """The columns of a span of a job. ``service``, ``node``: who told it."""
    id_ = f"{span.job}.{span.attempt}.{span.span}"
    return {**span.model_dump(), "id": id_, "service": service, "node": node, "received_at": now}
