"""Traces of jobs' attempts: spans on their way to the manager, and the waterfall that it makes of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field

from ces_common.messages.base import Message
from ces_common.messages.bounds import Count, Id, Small

MAX_BATCH: Final = 100  # spans in one message
MAX_ATTRIBUTES: Final = 8
MAX_LINKS: Final = 64
LONGEST_TEXT: Final = 128  # characters of an attribute
LARGEST_BATCH: Final = 1024 * 1024  # bytes of a message, expanded
AGENT: Final = "edge-agent"  # the service of all agents

TraceId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
SpanId = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Traceparent = Annotated[str, Field(pattern=r"^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$")]
"""A context as the header ``traceparent`` of W3C's Trace Context tells it."""
SpanKind = Literal["internal", "server", "producer", "consumer"]
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Attribute = (
    bool | Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | Annotated[float, Field(allow_inf_nan=False)] | Text
)
Attributes = Annotated[dict[Annotated[str, Field(max_length=64)], Attribute], Field(max_length=MAX_ATTRIBUTES)]


class Span(Message):
    """What took how long: microseconds, ``start_us`` since 1970 by the clock of the machine. ``job`` and ``attempt``:
    what was done for; None for what was done for many. ``links``: contexts of what it has to do with beside its parent.
    """

    trace: TraceId
    span: SpanId
    parent: SpanId | None = None
    name: Annotated[str, Field(max_length=64)]
    kind: SpanKind = "internal"
    job: Id | None = None
    attempt: Small = 1
    start_us: Annotated[Count, Field(le=2**53)]
    duration_us: Annotated[Count, Field(le=2**53)]
    attributes: Attributes = {}
    links: Annotated[list[Traceparent], Field(max_length=MAX_LINKS)] = []


class SpanBatch(Message):
    """Finished spans of one process."""

    service: Id
    spans: Annotated[list[Span], Field(max_length=MAX_BATCH)]


class SpanView(Message):
    """A line of a waterfall: ``depth`` says how far in it stands, under the one that it is part of or follows from.
    ``start_us``: after the attempt's beginning, in microseconds, and less than 0 only where clocks differ;
    ``duration_us``: None while it goes on. ``links``: ids of spans elsewhere that it has to do with."""

    id: str
    parent: str | None = None
    depth: Small
    name: str
    service: str
    node: str | None = None
    start_us: int
    duration_us: int | None = None
    attributes: Attributes = {}
    links: list[str] = []


class JobTrace(Message):
    """Where an attempt's time went, from its beginning until it ran. ``source``: ``spans`` where the services told each
    step of it, with the id of the ``trace``; ``events`` where it was not traced, and the phases are those between the
    job's events. ``attempts``: how many the job has had."""

    id: str  # of the job
    name: str
    attempt: Small
    attempts: Small
    source: Literal["spans", "events"]
    trace: str | None = None
    started_at: datetime | None = None
    spans: list[SpanView] = []
