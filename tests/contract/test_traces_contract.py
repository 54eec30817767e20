"""Which spans are kept, on both databases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from databases import KINDS, new_database
from manager_world import World, full_mesh, ring
from sqlalchemy import func, select

from ces_common.db import WriteTx
from ces_common.db.trace_tables import SpanRow
from ces_common.messages.traces import AGENT, Span
from ces_common.tracing import context_of, root
from ces_manager.jobs import spans as kept_spans
from ces_manager.jobs.spans import Told, keep_spans
from ces_manager.jobs.submission import submit_job
from ces_manager.jobs.trace_view import job_trace

NODES = ["a", "b", "c"]


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    world = World(new_database(request.param, tmp_path))
    world.add_nodes(*NODES)
    world.put_topology(full_mesh(NODES))
    yield world
    world.close()


@pytest.fixture
def traced(world: World) -> tuple[World, str, str]:
    """A job that runs on a, b and c, with the id of its trace."""
    span = root("POST /v1/jobs")

    def submit(tx: WriteTx) -> str:
        row = submit_job(tx, ring(disconnect="stop"), traceparent=span.traceparent)
        span.of_job(row.id, 1)
        tx.spans.append(span)
        return row.id

    job = world.write(submit)
    world.run(job, NODES)
    context = context_of(span.traceparent)
    assert context is not None
    return world, job, context[0]


def keep(world: World, *told: Told) -> Sequence[Told]:
    with world.uow.bare_write() as session:
        return keep_spans(session, told, world.now)


def told(job: str, trace: str, number: int = 1, node: str | None = "a", **more: object) -> Told:
    given = {"trace": trace, "span": f"{number:016x}", "name": "start worker", "job": job, "start_us": 1}
    span = Span.model_validate({**given, "duration_us": 1, **more})
    return Told(AGENT if node else "scheduler", node, span)


def names(world: World, job: str, attempt: int | None = None) -> list[str]:
    with world.uow.read() as tx:
        return [span.name for span in job_trace(tx, job, attempt).spans]


def test_the_manager_s_own_steps_are_kept_with_what_they_change(traced: tuple[World, str, str]) -> None:
    world, job, trace = traced
    assert names(world, job) == ["POST /v1/jobs", "commit plan", "network in place", "workers run"]
    with world.uow.read() as tx:
        shown = job_trace(tx, job, None)
    assert (shown.source, shown.trace) == ("spans", trace)
    assert [span.depth for span in shown.spans] == [0, 1, 2, 3]


def test_what_is_undone_leaves_no_span(world: World) -> None:
    def fails(tx: WriteTx) -> None:
        row = submit_job(tx, ring(), traceparent=root("POST").traceparent)
        tx.spans.append(root("POST", job=row.id))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        world.write(fails)
    with world.uow.read() as tx:
        assert tx.session.scalar(select(func.count()).select_from(SpanRow)) == 0


def test_a_span_told_twice_is_kept_once(traced: tuple[World, str, str]) -> None:
    world, job, trace = traced
    one = told(job, trace)
    assert keep(world, one) == [one]
    keep(world, one)
    keep(world, one, one)
    assert names(world, job).count("start worker") == 1


def test_nobody_tells_of_what_is_not_traced_or_not_his(traced: tuple[World, str, str]) -> None:
    world, job, trace = traced
    other = world.submit(ring("untraced", 2))
    world.add_nodes("stranger")
    refused = [
        told(job, trace, node="stranger"),  # has no part in it
        told(job, "ab" * 16),  # another trace
        told(job, trace, attempt=2),  # an attempt that there was not
        told(other, trace),  # a job that is not traced, with the trace of one that is
        told("01J0000000000000000000000A", trace),  # no job
    ]
    assert keep(world, *refused) == []
    assert "start worker" not in names(world, job)
    assert names(world, other) == ["attempt", "queued"]


def test_one_node_tells_only_so_much(traced: tuple[World, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    world, job, trace = traced
    monkeypatch.setattr(kept_spans, "MOST_OF_NODE", 3)
    monkeypatch.setattr(kept_spans, "MOST_OF_ATTEMPT", 12)  # the manager has told 4
    assert len(keep(world, *(told(job, trace, n) for n in range(1, 9)))) == 3
    assert len(keep(world, told(job, trace, 20), told(job, trace, 21, "b"))) == 1
    assert len(keep(world, *(told(job, trace, n, None) for n in range(30, 50)))) == 4, "no more than of an attempt"


def test_another_attempt_has_a_trace_of_its_own(traced: tuple[World, str, str]) -> None:
    world, job, trace = traced
    world.wait(100)
    world.beat("b", "c")
    world.expire()
    world.confirm(job)
    assert world.job(job).attempt == 2
    assert names(world, job) == ["queue again"]
    assert "workers run" in names(world, job, 1)
    with world.uow.read() as tx:
        again = job_trace(tx, job, 2)
    assert again.trace not in (None, trace)
    assert len(again.spans[0].links) == 1
    late = told(job, trace)  # of the former attempt
    assert keep(world, late) == [late]
    assert keep(world, told(job, trace, 2, attempt=2)) == []


def test_spans_go_with_the_events_and_with_the_job(traced: tuple[World, str, str]) -> None:
    world, _, _ = traced
    world.wait(world.timeouts.keep_messages_s + 1)
    world.prune()
    with world.uow.read() as tx:
        assert tx.session.scalar(select(func.count()).select_from(SpanRow)) == 0
