"""Event streams that break, and jobs that are followed over them."""

from __future__ import annotations

import httpx
import pytest

from ces_client import ApiError, UnexpectedAnswer, Unreachable
from ces_client import watch as watching
from ces_client.stream import StreamEvent
from ces_client.watch import fold


def progress(task="worker-0", round_=3):
    return None, "progress", {"task": task, "data": {"progress": {"round": round_, "rounds": 40}}}


def test_a_broken_stream_goes_on_after_the_last_number(client, manager, samples):
    manager.on(
        "GET",
        "jobs/j1/events",
        samples.sse(samples.job_event(4, "planned"), progress(), broken=True),
        samples.problem(503, "Unavailable"),
        httpx.ConnectError("refused"),
        samples.sse(samples.job_event(4, "planned"), samples.job_event(7, "running")),
        samples.sse(samples.job_event(9, "succeeded"), samples.job_event(10, "queued")),
    )
    events = list(client.jobs.events("j1"))
    assert [(event.sequence, event.type.rpartition(".")[2]) for event in events] == [
        (4, "planned"),
        (None, "progress"),
        (7, "running"),
        (9, "succeeded"),
    ]
    resumed = [request.headers["last-event-id"] for request in manager.requests]
    assert resumed == ["0", "4", "4", "4", "7"]
    assert {request.headers["accept"] for request in manager.requests} == {"text/event-stream"}


def test_everybodys_events_do_not_end_with_a_job(client, manager, samples):
    manager.on(
        "GET", "events", samples.sse(samples.job_event(2, "failed")), samples.sse(samples.job_event(3, "queued"))
    )
    events = client.events(after=1)
    assert [next(events).sequence, next(events).sequence] == [2, 3]
    events.close()


def test_events_so_far_leave_out_passing_news_and_end(client, manager, samples):
    def quiet(request: httpx.Request) -> httpx.Response:
        def body():
            yield b'id: 1\nevent: ces.v1.job.queued\ndata: {"subject": "j1"}\n\n'
            yield b"event: progress\ndata: {}\n\n"
            raise httpx.ReadTimeout("silence", request=request)

        return httpx.Response(200, content=body(), headers={"content-type": "text/event-stream"})

    manager.on("GET", "events", quiet)
    assert [event.sequence for event in client.events_so_far()] == [1]


def test_a_refused_stream_is_an_error_not_a_reason_to_try_on(client, manager, samples):
    manager.on("GET", "jobs/j1/events", samples.problem(404, "Not found", "no job j1"))
    with pytest.raises(ApiError, match="no job j1"):
        list(client.jobs.events("j1"))
    assert len(manager.requests) == 1


def test_a_manager_that_stays_away_ends_the_stream(client, manager):
    manager.on("GET", "events", httpx.ConnectError("refused"))
    with pytest.raises(Unreachable):
        next(client.events())


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>", headers={"content-type": "text/html"}),
        httpx.Response(200, text="event: ces.v1.x\nid: 1\ndata: {\n\n", headers={"content-type": "text/event-stream"}),
        httpx.Response(200, text="event: ces.v1.x\nid: a\ndata: {}\n\n", headers={"content-type": "text/event-stream"}),
        httpx.Response(200, text="event: progress\ndata: []\n\n", headers={"content-type": "text/event-stream"}),
    ],
)
def test_what_is_no_event_stream_is_told_apart(client, manager, answer):
    manager.on("GET", "events", answer)
    with pytest.raises(UnexpectedAnswer):
        next(client.events())


def test_waiting_ends_with_the_job(client, manager, samples):
    manager.on("GET", "jobs/j1", samples.job("queued"), samples.job("running"), samples.job("succeeded"))
    manager.on("GET", "jobs/j1/events", samples.sse(samples.job_event(1, "running")), samples.sse())
    assert client.jobs.wait("j1", timeout=30).state == "succeeded"


def test_waiting_needs_no_stream(client, manager, samples):
    manager.on("GET", "jobs/j1", samples.job("queued"), samples.job("running"), samples.job("failed"))
    manager.on("GET", "jobs/j1/events", samples.problem(500, "Internal error"))
    assert client.jobs.wait("j1").state == "failed"


def test_waiting_gives_up_after_its_time(client, manager, samples):
    manager.on("GET", "jobs/j1", samples.job("running"))
    manager.on("GET", "jobs/j1/events", samples.sse())
    with pytest.raises(TimeoutError, match="job j1 is still running after 0 s"):
        client.jobs.wait("j1", timeout=0)


def test_waiting_outlasts_a_restart_of_the_manager(client, manager, samples):
    away = [httpx.ConnectError("refused")] * 5
    manager.on("GET", "jobs/j1", samples.job("running"), *away, samples.job("succeeded"))
    manager.on("GET", "jobs/j1/events", samples.problem(500, "Internal error"))
    assert client.jobs.wait("j1").state == "succeeded"


def test_waiting_ends_where_the_manager_stays_away(client, manager, samples, monkeypatch):
    monkeypatch.setattr(watching, "PATIENCE_S", 0.05)
    manager.on("GET", "jobs/j1", samples.job("running"), httpx.ConnectError("refused"))
    manager.on("GET", "jobs/j1/events", samples.problem(500, "Internal error"))
    with pytest.raises(Unreachable):
        client.jobs.wait("j1")


def test_progress_shows_at_once(client, manager, samples, monkeypatch):
    monkeypatch.setattr(watching, "REFRESH_S", 3600)
    manager.on("GET", "jobs/j1", samples.job("running"))
    manager.on("GET", "jobs/j1/events", samples.sse(progress("worker-1", 17)))
    views = client.jobs.watch("j1")
    seen = next(view for view in views if view.placement[1].progress)
    views.close()
    assert seen.placement[0].progress is None
    assert seen.placement[1].progress == {"progress": {"round": 17, "rounds": 40}}


def test_measurements_are_put_into_their_flows(samples):
    rates = [{"src": "worker-0", "dst": "worker-1", "measured": 1e6, "peak": 2e6}, {"src": "x", "dst": "y"}]
    before = samples.job("running", round_=1)
    view = fold(before, StreamEvent("measured", None, {"flows": rates}))
    assert (view.flows[0].measured, view.flows[0].peak) == (1e6, 2e6)
    assert view.flows[1] == before.flows[1]
    assert fold(view, StreamEvent("ces.v1.job.running", 3, {})) is view
