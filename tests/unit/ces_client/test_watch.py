"""Watching a job and waiting for its end."""

from __future__ import annotations

import httpx
import pytest

from ces_client import Unreachable
from ces_client import watch as watching
from ces_client.stream import StreamEvent
from ces_client.watch import fold


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


def progress(task="worker-0", round_=3):
    return None, "progress", {"task": task, "data": {"progress": {"round": round_, "rounds": 40}}}


def test_progress_shows_at_once(client, manager, samples, monkeypatch):
    monkeypatch.setattr(watching, "REFRESH_S", 3600)
    manager.on("GET", "jobs/j1", samples.job("running"))
    manager.on("GET", "jobs/j1/events", samples.sse(progress("worker-1", 17)))
    views = client.jobs.watch("j1")
    seen = next(view for view in views if view.placement[1].progress)
    views.close()
    assert seen.placement[0].progress is None
    assert seen.placement[1].progress == {"progress": {"round": 17, "rounds": 40}}


def test_other_events_change_nothing_of_a_view(samples):
    view = samples.job("running", round_=1)
    assert fold(view, StreamEvent("ces.v1.job.running", 3, {})) is view


def stopping(samples, *states):
    view = samples.job("cancelled")
    return view.model_copy(
        update={
            "placement": [
                task.model_copy(update={"state": state}) for task, state in zip(view.placement, states, strict=True)
            ]
        }
    )


def test_waiting_for_a_cancelled_job_ends_when_its_workers_have(client, manager, samples):
    views = [stopping(samples, "stopping", "stopping"), stopping(samples, "stopped", "stopping")]
    manager.on("GET", "jobs/j1", samples.job("running"), *views, stopping(samples, "stopped", "lost"))
    manager.on("GET", "jobs/j1/events", samples.sse(samples.job_event(1, "cancelled")))
    ended = client.jobs.wait("j1", timeout=30)
    assert [task.state for task in ended.placement] == ["stopped", "lost"]


def test_waiting_for_a_job_that_was_never_placed_ends_at_once(client, manager, samples):
    manager.on("GET", "jobs/j1", stopping(samples, None, None))
    assert client.jobs.wait("j1").state == "cancelled"


def test_a_wait_that_is_too_short_says_that_workers_are_being_stopped(client, manager, samples):
    manager.on("GET", "jobs/j1", stopping(samples, "stopped", "stopping"))
    with pytest.raises(TimeoutError, match=r"job j1 is still stopping \(cancelled\) after 0 s"):
        client.jobs.wait("j1", timeout=0)
