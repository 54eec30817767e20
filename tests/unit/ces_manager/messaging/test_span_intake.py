"""Spans as the manager hears them: a stolen agent says nothing in another's name, and little in its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from manager_world import World, ring
from memory_bus import MemoryBroker, MemoryBus

from ces_common import subjects
from ces_common.bus.port import RemoteError
from ces_common.messages.traces import AGENT, MAX_BATCH, Span, SpanBatch
from ces_common.trace_shipping import SPANS
from ces_common.tracing import context_of, root
from ces_manager.database import Database
from ces_manager.jobs.spans import Told
from ces_manager.jobs.submission import submit_job
from ces_manager.jobs.trace_view import job_trace
from ces_manager.messaging import span_intake
from ces_manager.messaging.span_intake import BURST, LARGEST, SpanIntake

NODES = ["a", "b", "c", "d"]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_intake, "KEEP_S", 0.0)


@asynccontextmanager
async def listening(world: World) -> AsyncIterator[tuple[MemoryBus, list[Told]]]:
    """With what is handed on to a collector."""
    bus, database, exported = MemoryBus(MemoryBroker()), Database(world.uow, world.clock), list[Told]()

    def export(told: Sequence[Told]) -> None:
        exported.extend(told)

    intake = SpanIntake(database, export)
    await bus.connect()
    await intake.serve(bus)
    running = asyncio.create_task(intake.run())
    try:
        yield bus, exported
    finally:
        running.cancel()
        await asyncio.wait({running})
        await bus.close()
        world.uow.on_spans = None
        database.close()


def traced_job(world: World) -> tuple[str, str]:
    """A job on a, b and c, and the id of its trace."""
    traceparent = root("POST /v1/jobs").traceparent
    job = world.write(lambda tx: submit_job(tx, ring(), traceparent=traceparent).id)
    world.run(job, NODES)
    context = context_of(traceparent)
    assert context is not None
    return job, context[0]


def span(job: str | None, trace: str, number: int = 1, **more: object) -> Span:
    given = {"trace": trace, "span": f"{number:016x}", "name": "start worker", "job": job, "start_us": 1}
    return Span.model_validate({**given, "duration_us": 1, **more})


def batch(*spans: Span, service: str = AGENT) -> bytes:
    return SpanBatch(service=service, spans=list(spans)).encode()


def names(world: World, job: str) -> list[tuple[str, str, str | None]]:
    with world.uow.read() as tx:
        return [(each.service, each.name, each.node) for each in job_trace(tx, job, None).spans]


async def test_a_node_tells_what_it_did(world: World) -> None:
    job, trace = traced_job(world)
    async with listening(world) as (bus, exported):
        await bus.request(subjects.spans("a"), batch(span(job, trace)))
        assert (AGENT, "start worker", "a") in names(world, job)
        assert [(each.service, each.node) for each in exported] == [(AGENT, "a")]


async def test_a_service_tells_also_of_what_it_did_for_many(world: World) -> None:
    job, trace = traced_job(world)
    async with listening(world) as (bus, exported):
        told = batch(span(job, trace, name="decide"), span(None, "ab" * 16, 2, name="cycle"), service="scheduler")
        await bus.request(SPANS, told)
        assert ("scheduler", "decide", None) in names(world, job)
        assert [each.span.name for each in exported] == ["decide", "cycle"]


@pytest.mark.parametrize("service", ["manager", "scheduler", "nobody"])
async def test_a_node_speaks_in_no_other_s_name(world: World, service: str) -> None:
    job, trace = traced_job(world)
    before = names(world, job)
    async with listening(world) as (bus, exported):
        with pytest.raises(RemoteError, match="its own spans only"):
            await bus.request(subjects.spans("a"), batch(span(job, trace), service=service))
        assert names(world, job) == before
        assert exported == []


async def test_a_node_tells_of_no_job_that_it_has_no_part_in(world: World) -> None:
    job, trace = traced_job(world)
    untraced = world.submit(ring("untraced", 2))
    before = names(world, job)
    async with listening(world) as (bus, exported):
        await bus.request(subjects.spans("d"), batch(span(job, trace)))
        strange = [span(untraced, trace), span("0" * 26, trace), span(None, trace), span(job, "ab" * 16)]
        await bus.request(subjects.spans("a"), batch(*strange))
        assert names(world, job) == before
        assert exported == []


async def test_huge_and_malformed_spans_are_refused(world: World) -> None:
    job, trace = traced_job(world)
    good = batch(span(job, trace)).decode()
    huge = good.replace('"attributes":{}', '"attributes":{"k":"' + "x" * 1000 + '"}')
    assert huge != good
    many = '{"service":"edge-agent","spans":[' + ",".join([span(job, trace).encode().decode()] * (MAX_BATCH + 1)) + "]}"
    odd = batch(span("../../etc/passwd", trace)).decode()
    async with listening(world) as (bus, exported):
        for bad in (huge, many, odd, "nonsense", "[]"):
            with pytest.raises(RemoteError) as refused:
                await bus.request(subjects.spans("a"), bad.encode())
            assert refused.value.code == "malformed"
        with pytest.raises(RemoteError):
            await bus.request(subjects.spans("a"), b"x" * (LARGEST + 1))
        assert exported == []


async def test_a_node_tells_only_so_often(world: World) -> None:
    job, trace = traced_job(world)
    async with listening(world) as (bus, _):
        asked = [bus.request(subjects.spans("a"), batch(span(job, trace, number))) for number in range(1, BURST + 2)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert {each.code for each in answers if isinstance(each, RemoteError)} == {"too-often"}
        await bus.request(subjects.spans("b"), batch(span(job, trace, 100)))  # another one is heard
