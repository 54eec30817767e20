"""Following a job to its end."""

from __future__ import annotations

import json

import httpx
import pytest
from ces_command import ces

from ces_client.cli import attach
from ces_common.messages.events import Reason


def follow(manager, samples, *views):
    """A manager whose job goes through these views."""
    manager.on("POST", "jobs", views[0], status=201)
    manager.on("GET", f"jobs/{samples.id}", *views)
    manager.on("GET", f"jobs/{samples.id}/events", samples.sse())


@pytest.mark.parametrize(("state", "code"), [("succeeded", 0), ("failed", 1), ("cancelled", 1)])
def test_submit_and_wait_ends_as_the_job_does(connected, samples, job_file, state, code):
    follow(connected, samples, samples.job("queued"), samples.job("running", round_=20), samples.job(state))
    shown = ces("submit", job_file, "--wait", code=code).stdout.splitlines()
    news = [line.split(" ", 1)[1] for line in shown[:3]]
    assert news == ["digits queued", "digits running (worker-0 on n0, worker-1 on n1)", f"digits {state}"]
    assert any("10–50 Mbit/s" in line for line in shown[3:])


def test_waiting_with_json_prints_the_end_alone(connected, samples, job_file):
    follow(connected, samples, samples.job("queued"), samples.job("failed", reason="gone"))
    shown = json.loads(ces("submit", job_file, "--wait", "-o", "json", code=1).stdout)
    assert (shown["state"], shown["reason"]) == ("failed", "gone")


FOREVER = Reason(code="cpu-total", text="the tasks need 9 cores; all nodes together have 4 cores", forever=True)


def test_a_job_without_any_place_is_not_waited_for(connected, samples, job_file, monkeypatch):
    monkeypatch.setattr(attach, "HOPELESS_S", 0.0)
    follow(connected, samples, samples.job("queued", waiting=FOREVER))
    result = ces("submit", job_file, "--wait", code=2)
    assert result.stdout.count("the tasks need 9 cores") == 1
    assert "the tasks need" not in result.stderr
    assert f"ces cancel {samples.id}" in result.stderr


def test_patience_with_a_cluster_that_still_gathers():
    verdict = attach.Verdict()
    assert not verdict.hopeless(FOREVER, 0.0)
    assert not verdict.hopeless(None, 50.0)
    assert not verdict.hopeless(FOREVER, 60.0)
    assert not verdict.hopeless(FOREVER.model_copy(update={"forever": False}), 70.0)
    assert not verdict.hopeless(FOREVER, 80.0)
    assert verdict.hopeless(FOREVER, 80.0 + attach.HOPELESS_S)


def test_ctrl_c_detaches_and_says_how_to_come_back(connected, samples, monkeypatch):
    def interrupted(self, job):
        yield samples.job("running")
        raise KeyboardInterrupt

    monkeypatch.setattr("ces_client.client.Jobs.watch", interrupted)
    result = ces("wait", samples.id, code=130)
    assert f"ces wait {samples.id}" in result.stderr
    assert connected.requests == []


def test_a_failed_job_says_why_once_and_shows_the_end_of_its_log(connected, samples, job_file):
    reason = "worker-1 on n1 exited with code 1: out of memory"
    follow(connected, samples, samples.job("queued"), samples.job("running"), samples.job("failed", reason=reason))
    log = "".join(f"step {i}\n" for i in range(50)) + "x" * 500 + "\n"
    connected.on("GET", f"jobs/{samples.id}/logs", httpx.Response(200, text=log))
    shown = ces("submit", job_file, "--wait", code=1).stdout
    assert shown.count(reason) == 1
    assert shown.count("worker-1 on n1 failed") == 0, "the reason has said it"
    assert "worker-1 | step 49" in shown
    assert "step 45" not in shown, "a few lines only"
    assert f"worker-1 | {'x' * 200}\n" in shown, "and no endless ones"
    assert f"the whole log: ces logs {samples.id} worker-1" in shown


def test_the_end_of_a_log_shows_what_would_steer_a_terminal_as_ces_logs_does(connected, samples, job_file):
    follow(connected, samples, samples.job("failed", reason="gone"))
    connected.on("GET", f"jobs/{samples.id}/logs", httpx.Response(200, text="one\rtwo\n"))
    assert r"worker-1 | one\x0dtwo" in ces("submit", job_file, "--wait", code=1).stdout


def test_a_log_that_cannot_be_read_is_left_out(connected, samples, job_file):
    follow(connected, samples, samples.job("failed", reason="gone"))
    connected.on("GET", f"jobs/{samples.id}/logs", samples.problem(500, "Internal error"))
    assert "ces logs" not in ces("submit", job_file, "--wait", code=1).stdout
