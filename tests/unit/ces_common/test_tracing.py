from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_common import tracing
from ces_common.messages.events import JobChanged, new_event, parse_event
from ces_common.messages.traces import LONGEST_TEXT, MAX_ATTRIBUTES, MAX_BATCH, Span, SpanBatch
from ces_common.states import JobState
from ces_common.tracing import (
    AttemptSpans,
    Finished,
    context_of,
    root,
    same_trace,
    span,
    stored_context,
    traceparent_of,
)

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01"
JOB = "01J0000000000000000000000A"


@pytest.fixture(autouse=True)
def finished(monkeypatch: pytest.MonkeyPatch) -> Finished:
    """Spans of this test alone."""
    fresh = Finished()
    monkeypatch.setattr(tracing, "FINISHED", fresh)
    return fresh


@pytest.mark.parametrize("text", [GOOD, f"00-{TRACE}-{SPAN}-00", f"01-{TRACE}-{SPAN}-01-more", f"42-{TRACE}-{SPAN}-ff"])
def test_valid_contexts(text: str) -> None:
    assert context_of(text) == (TRACE, SPAN)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "nonsense",
        f"ff-{TRACE}-{SPAN}-01",  # a version that there never will be
        f"00-{TRACE}-{SPAN}-01-more",  # this version has no more
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01\n",
        f"01-{TRACE}-{SPAN}-01-{'x' * 600}",
    ],
)
def test_invalid_contexts(text: str | None) -> None:
    assert context_of(text) is None


@given(st.binary(min_size=16, max_size=16).filter(any), st.binary(min_size=8, max_size=8).filter(any))
def test_what_is_written_is_read(trace: bytes, own: bytes) -> None:
    assert context_of(traceparent_of(trace.hex(), own.hex())) == (trace.hex(), own.hex())


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    context = context_of(text)
    assert context is None or all(part in text for part in context)


def test_an_encoded_event_tells_its_context() -> None:
    changed = JobChanged(job=JOB, name='"traceparent":"x","data":', attempt=1, state=JobState.QUEUED)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    traced = new_event("s", "job", "queued", JOB, changed, at, traceparent=GOOD).encode().decode()
    assert stored_context(traced) == GOOD
    assert parse_event(traced.encode()).traceparent == GOOD
    assert stored_context(new_event("s", "job", "queued", JOB, changed, at).encode().decode()) is None


def test_a_span_is_its_parent_s_child(finished: Finished) -> None:
    first = root("first", job=JOB)
    with span("second", first.traceparent, job=JOB, attempt=1, links=[GOOD, "nonsense"]) as second:
        assert same_trace(first.traceparent, second.traceparent)
    first.end()
    first.end()  # once is enough
    told = {each.name: each for each in finished.take(10)}
    assert told["second"].parent == told["first"].span
    assert told["first"].parent is None
    assert told["second"].links == [GOOD]
    assert len(told) == 2


def test_a_caller_s_trace_goes_on(finished: Finished) -> None:
    root("POST", caller=GOOD).end()
    root("POST", caller="nonsense").end()
    gone_on, begun = finished.take(2)
    assert (gone_on.trace, gone_on.parent) == (TRACE, SPAN)
    assert begun.trace != TRACE
    assert begun.parent is None


def test_a_failure_is_told(finished: Finished) -> None:
    with pytest.raises(KeyError), span("fails", GOOD, job=JOB, attempt=1):
        raise KeyError("x")
    assert finished.take(1)[0].attributes == {"error": "KeyError"}


def test_attributes_are_bounded(finished: Finished) -> None:
    root("much", **{f"a{i}": "x" * 1000 for i in range(100)}).end()
    (told,) = finished.take(1)
    assert len(told.attributes) == MAX_ATTRIBUTES
    assert all(len(str(value)) == LONGEST_TEXT for value in told.attributes.values())


def test_only_so_many_wait() -> None:
    waiting = Finished(most=3)
    spans = [_span(f"{number:016x}") for number in range(1, 6)]
    waiting.add(spans)
    assert waiting.take(10) == spans[2:]
    waiting.add(spans[3:])
    waiting.put_back(spans[1:3])  # of those the oldest gives way
    assert waiting.take(10) == spans[2:]


def _span(own: str) -> Span:
    return Span(trace=TRACE, span=own, name="n", job=JOB, start_us=0, duration_us=1)


async def test_a_thread_wakes_who_waits() -> None:
    waiting = Finished()
    woken = asyncio.create_task(waiting.wait())
    await asyncio.sleep(0)
    await asyncio.to_thread(waiting.add, [_span(SPAN)])
    await asyncio.wait_for(woken, 5)


def test_one_span_for_each_attempt(finished: Finished) -> None:
    spans = AttemptSpans("prepare")
    spans.see({f"{JOB}.1": GOOD, f"{JOB}.2": "nonsense", "odd": GOOD})
    spans.see({f"{JOB}.1": GOOD})
    assert list(spans.contexts) == [f"{JOB}.1"]
    spans.done({f"{JOB}.2"})
    assert not len(finished)
    spans.done()
    spans.done()
    (told,) = finished.take(10)
    assert (told.job, told.attempt, told.parent) == (JOB, 1, SPAN)
    spans.see({})
    assert spans.contexts == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"attributes": {"k": "x" * (LONGEST_TEXT + 1)}},
        {"attributes": {f"k{i}": 1 for i in range(MAX_ATTRIBUTES + 1)}},
        {"attributes": {"k": [1]}},
        {"links": [GOOD] * 65},
        {"links": ["nonsense"]},
        {"name": "x" * 65},
        {"start_us": 2**60},
        {"trace": "short"},
        {"kind": "boss"},
    ],
)
def test_a_span_beyond_its_bounds_is_refused(wrong: dict[str, object]) -> None:
    good = _span(SPAN).model_dump()
    Span.model_validate(good)
    with pytest.raises(ValueError):
        Span.model_validate(good | wrong)


def test_a_batch_is_bounded() -> None:
    with pytest.raises(ValueError):
        SpanBatch(service="scheduler", spans=[_span(SPAN)] * (MAX_BATCH + 1))


def test_the_manager_imports_no_more_of_opentelemetry_than_its_web_framework_does() -> None:
    source = (
        "import fastapi, sys; before = {m for m in sys.modules if m.startswith('opentelemetry')};"
        "import ces_manager.__main__; print({m for m in sys.modules if m.startswith('opentelemetry')} - before)"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
