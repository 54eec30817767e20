from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from memory_bus import MemoryBroker, MemoryBus

from ces_common import subjects, trace_shipping, tracing
from ces_common.bus.port import Message, RemoteError
from ces_common.messages.traces import MAX_BATCH, SpanBatch
from ces_common.trace_shipping import SPANS, flush_spans, ship_spans
from ces_common.tracing import Finished, root


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> Finished:
    fresh = Finished()
    for module in (tracing, trace_shipping):
        monkeypatch.setattr(module, "FINISHED", fresh)
    monkeypatch.setattr(trace_shipping, "backoff_s", lambda _: 0.0)
    monkeypatch.setattr(trace_shipping, "GATHER_S", 0.0)
    return fresh


@pytest.fixture
async def bus() -> AsyncIterator[MemoryBus]:
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    yield bus
    await bus.close()


async def test_what_finishes_is_told(bus: MemoryBus, finished: Finished) -> None:
    told: asyncio.Queue[SpanBatch] = asyncio.Queue()

    async def take(message: Message) -> bytes:
        told.put_nowait(SpanBatch.model_validate_json(message.data))
        return b""

    await bus.serve(SPANS, take)
    shipping = asyncio.create_task(ship_spans(bus, SPANS, "scheduler"))
    for number in range(MAX_BATCH + 1):
        root(f"s{number}").end()
    first, second = await told.get(), await told.get()
    shipping.cancel()
    assert (len(first.spans), len(second.spans)) == (MAX_BATCH, 1)
    assert first.service == "scheduler"


async def test_what_nobody_takes_waits_and_what_is_refused_does_not(bus: MemoryBus, finished: Finished) -> None:
    answers = iter([RemoteError("too-often", ""), RemoteError("unavailable", ""), RemoteError("malformed", ""), None])
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def take(message: Message) -> bytes:
        answer = next(answers)
        heard.put_nowait(SpanBatch.model_validate_json(message.data).spans[0].name)
        if answer is not None:
            raise answer
        return b""

    shipping = asyncio.create_task(ship_spans(bus, SPANS, "scheduler"))  # at first there is nobody
    root("first").end()
    await asyncio.sleep(0)
    await bus.serve(SPANS, take)
    assert [await heard.get() for _ in range(3)] == ["first"] * 3
    root("second").end()
    assert await heard.get() == "second"
    shipping.cancel()


async def test_the_last_ones_are_told_at_once(bus: MemoryBus, finished: Finished) -> None:
    root("last").end()
    await flush_spans(bus, SPANS, "scheduler")  # nobody listens: it ends all the same
    assert len(finished) == 1
    told = []

    async def take(message: Message) -> bytes:
        told.append(message.data)
        return b""

    await bus.serve(SPANS, take)
    await flush_spans(bus, SPANS, "scheduler")
    assert len(told) == 1
    assert not len(finished)


def test_a_node_tells_on_its_own_subject() -> None:
    assert subjects.parse_spans(subjects.spans("edge-1")) == "edge-1"
    assert subjects.answered_to(subjects.spans("edge-1")) == "_INBOX.edge-1."
