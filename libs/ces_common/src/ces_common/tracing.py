"""Tracing of jobs' attempts, for all services.

A trace begins where the manager says so (:func:`root`). Its context travels with the job: stored with the events of the
transaction that made it, in records, in desired documents and in the headers of messages. Whoever comes by a context
makes spans of it; where there is none, there is nothing to do but to see that. So a service needs no setting, and none
of this module's spans needs a library: they go to the manager (:mod:`ces_common.trace_shipping`), which keeps them and
hands them on.

Contexts are written as W3C's Trace Context has it (``traceparent``, https://www.w3.org/TR/trace-context/).
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections import deque
from collections.abc import Container, Iterable, Mapping
from types import TracebackType
from typing import Final, Self

from prometheus_client import Counter

from ces_common.messages.traces import LONGEST_TEXT, MAX_ATTRIBUTES, MAX_LINKS, Attribute, Span, SpanKind

TRACEPARENT: Final = "traceparent"  # the header, and the extension attribute of events
MOST_FINISHED: Final = 4096  # spans that wait to be sent
DROPPED = Counter("ces_spans_dropped_total", "Spans that nobody will see", ["why"])
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_STORED = re.compile(r'"traceparent":"(00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})","data":')  # as CloudEvent encodes it


def context_of(traceparent: str | None) -> tuple[str, str] | None:
    """The ids of trace and span; None where it is no valid context. A version that is not known yet may say more."""
    match = _TRACEPARENT.fullmatch(traceparent) if traceparent and len(traceparent) <= 512 else None
    if match is None:
        return None
    version, trace, span, _, more = match.groups()
    if version == "ff" or (version == "00" and more) or not int(trace, 16) or not int(span, 16):
        return None
    return trace, span


def traceparent_of(trace: str, span: str) -> str:
    return f"00-{trace}-{span}-01"


def same_trace(one: str | None, other: str | None) -> bool:
    """Whether both are contexts of one trace."""
    left, right = context_of(one), context_of(other)
    return left is not None and right is not None and left[0] == right[0]


def stored_context(event: str) -> str | None:
    """The context that an encoded event tells, without reading all of it."""
    if '"traceparent"' not in event:
        return None
    found = _STORED.search(event)
    return None if found is None else found.group(1)


def headers(traceparent: str | None) -> dict[str, str] | None:
    """Of a message that is sent in this context."""
    return None if traceparent is None else {TRACEPARENT: traceparent}


class Finished:
    """Spans that wait to be sent; the oldest are dropped where too many do. Threads may add."""

    def __init__(self, most: int = MOST_FINISHED) -> None:
        self._spans: deque[Span] = deque()
        self._most = most
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def add(self, spans: Iterable[Span]) -> None:
        self._spans.extend(spans)
        self._cut()
        waiter = self._waiter
        if waiter is not None:
            waiter[0].call_soon_threadsafe(waiter[1].set)

    def put_back(self, spans: list[Span]) -> None:
        """Those that were taken and could not be sent."""
        self._spans.extendleft(reversed(spans))
        self._cut()

    def take(self, most: int) -> list[Span]:
        """The oldest."""
        return [self._spans.popleft() for _ in range(min(most, len(self._spans)))]

    async def wait(self) -> None:
        """Until there are some."""
        came = asyncio.Event()
        self._waiter = asyncio.get_running_loop(), came
        try:
            if not self._spans:  # looked at once whoever adds one can tell
                await came.wait()
        finally:
            self._waiter = None

    def _cut(self) -> None:
        while len(self._spans) > self._most:
            self._spans.popleft()
            DROPPED.labels("too many wait").inc()

    def __len__(self) -> int:
        return len(self._spans)


FINISHED = Finished()


class OpenSpan:
    """A span under way; as a context manager it ends with the block. ``traceparent``: its own context, for whatever
    follows from it."""

    def __init__(
        self,
        name: str,
        trace: str,
        parent: str | None,
        job: str | None,
        attempt: int,
        kind: SpanKind,
        attributes: Mapping[str, Attribute],
        links: Iterable[str],
    ) -> None:
        self._name, self._trace, self._parent, self._job, self._attempt = name, trace, parent, job, attempt
        self._kind, self._attributes, self._links = kind, dict(attributes), [each for each in links if context_of(each)]
        self._id = secrets.token_hex(8)
        self._start_us, self._began = time.time_ns() // 1000, time.perf_counter()
        self._over = False
        self.traceparent = traceparent_of(trace, self._id)

    def began(self, seconds_ago: float) -> Self:
        """It has been going on for a while."""
        self._start_us -= int(seconds_ago * 1e6)
        self._began -= seconds_ago
        return self

    def of_job(self, job: str, attempt: int) -> None:
        """Known only by now."""
        self._job, self._attempt = job, attempt

    def tell(self, **attributes: Attribute) -> None:
        self._attributes |= attributes

    def end(self) -> None:
        """The first time; later it does nothing."""
        if not self._over:
            FINISHED.add([self.finished()])

    def finished(self) -> Span:
        """It ends now, and whoever asks looks after it."""
        self._over = True
        told = list(self._attributes.items())[:MAX_ATTRIBUTES]
        return Span(
            trace=self._trace,
            span=self._id,
            parent=self._parent,
            name=self._name,
            kind=self._kind,
            job=self._job,
            attempt=self._attempt,
            start_us=self._start_us,
            duration_us=max(0, int((time.perf_counter() - self._began) * 1e6)),
            attributes={name: value[:LONGEST_TEXT] if isinstance(value, str) else value for name, value in told},
            links=self._links[:MAX_LINKS],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None:
            self.tell(error=kind.__name__)
        self.end()


def root(
    name: str,
    *,
    caller: str | None = None,
    job: str | None = None,
    attempt: int = 1,
    kind: SpanKind = "internal",
    links: Iterable[str] = (),
    **attributes: Attribute,
) -> OpenSpan:
    """Begin a trace, or go on with the one of a ``caller`` that told a valid context."""
    context = context_of(caller)
    trace, parent = context if context is not None else (secrets.token_hex(16), None)
    return OpenSpan(name, trace, parent, job, attempt, kind, attributes, links)


def span(
    name: str,
    parent: str,
    *,
    job: str,
    attempt: int,
    kind: SpanKind = "internal",
    links: Iterable[str] = (),
    **attributes: Attribute,
) -> OpenSpan:
    """A span of an attempt. ``parent``: the context of what it follows from. Raises ValueError where that is none."""
    context = context_of(parent)
    if context is None:
        raise ValueError(f"{parent!r} is no context of a trace")
    return OpenSpan(name, context[0], context[1], job, attempt, kind, attributes, links)


class AttemptSpans:
    """One span for each attempt that comes with a context, from when it is first seen until it is done. For loops that
    look at all attempts again and again. Attempts go by their keys (``<job>.<attempt>``)."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spans: dict[str, OpenSpan] = {}

    def see(self, contexts: Mapping[str, str]) -> None:
        """``contexts``: of all that are prepared now; the others are forgotten, done or not. A context that is none
        counts as none."""
        if not contexts and not self._spans:
            return
        self._spans = {key: kept for key, kept in self._spans.items() if key in contexts}
        for key, context in contexts.items():
            job, _, attempt = key.rpartition(".")
            if key not in self._spans and context_of(context) is not None and job and attempt.isdecimal():
                self._spans[key] = span(self._name, context, job=job, attempt=int(attempt))

    def done(self, keys: Container[str] | None = None) -> None:
        """End those of these attempts; None: of all. Their contexts stay known until they are forgotten."""
        for key, each in self._spans.items():
            if keys is None or key in keys:
                each.end()

    @property
    def contexts(self) -> dict[str, str]:
        """The spans' own, by key."""
        return {key: each.traceparent for key, each in self._spans.items()}
