"""Server-sent events: breaks, refusals, and what is no stream."""

from __future__ import annotations

import json

import httpx
import pytest

from ces_client import ApiError, UnexpectedAnswer, Unreachable
from ces_client.stream import newline_split


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


def so_far(number):
    return None, "so-far", {"number": number}


def test_events_so_far_leave_out_passing_news_and_end_where_the_manager_says(client, manager, samples):
    late = samples.job_event(3, "running")
    manager.on("GET", "events", samples.sse(samples.job_event(1, "queued"), progress(), so_far(2), late))
    assert [event.sequence for event in client.events_so_far()] == [1]


def test_where_the_end_of_the_events_so_far_is_not_told_nobody_takes_silence_for_it(client, manager, samples):
    def stalls(request: httpx.Request) -> httpx.Response:
        def body():
            yield b'id: 1\nevent: ces.v1.job.queued\ndata: {"subject": "j1"}\n\n'
            raise httpx.ReadTimeout("silence", request=request)

        return httpx.Response(200, content=body(), headers={"content-type": "text/event-stream"})

    manager.on("GET", "events", stalls, samples.sse(samples.job_event(1, "queued")))
    for _ in range(2):
        events = client.events_so_far()
        assert next(events).sequence == 1
        with pytest.raises(Unreachable):
            next(events)


def test_who_follows_is_not_told_where_the_events_so_far_ended(client, manager, samples):
    manager.on("GET", "events", samples.sse(samples.job_event(2, "queued"), so_far(2), samples.job_event(3, "running")))
    events = client.events()
    assert [next(events).sequence, next(events).sequence] == [2, 3]
    events.close()


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


ODD = "a\rb\fc\x85d\u2028e\x0bf"


def test_lines_end_at_a_newline_and_at_nothing_else():
    def pieces():
        for piece in ("one\ntw", "o\n", ODD, "\n\nla", "st"):
            yield piece.encode()

    response = httpx.Response(200, content=pieces(), headers={"content-type": "text/plain; charset=utf-8"})
    assert list(newline_split(response)) == ["one", "two", ODD, "", "last"]


def test_an_event_may_hold_line_separators(client, manager):
    event = {"type": "ces.v1.job.failed", "data": {"reason": ODD}}
    text = f"id: 1\nevent: ces.v1.job.failed\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"
    text += 'event: so-far\ndata: {"number": 1}\n\n'
    manager.on("GET", "events", httpx.Response(200, text=text, headers={"content-type": "text/event-stream"}))
    (found,) = client.events_so_far()
    assert found.data["data"]["reason"] == ODD
