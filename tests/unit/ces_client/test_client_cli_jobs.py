"""The ``ces`` command about jobs: what it prints, and with which status it ends."""

from __future__ import annotations

import json

import httpx
import pytest
from ces_command import ces

from ces_client.cli import attach, jobs
from ces_common.messages.api import JobFlowsView, LinkView
from ces_common.messages.events import Reason
from ces_common.messages.queries import PlanAnswer

FOREVER = Reason(code="cpu-total", text="the tasks need 9 cores; all nodes together have 4 cores", forever=True)


def follow(manager, samples, *views):
    """A manager whose job goes through these views."""
    manager.on("POST", "jobs", views[0], status=201)
    manager.on("GET", f"jobs/{samples.id}", *views)
    manager.on("GET", f"jobs/{samples.id}/events", samples.sse())


def test_submit(connected, samples, job_file):
    connected.on("POST", "jobs", samples.job("queued"), status=201)
    connected.on("GET", f"jobs/{samples.id}", samples.job("queued"), samples.job("planned", nodes=["n0", "n1"]))
    assert ces("submit", job_file).stdout == f"digits submitted: {samples.id}\nplanned on n0, n1\n"
    assert json.loads(ces("submit", job_file, "-o", "json").stdout)["state"] == "planned"


def test_submit_tells_why_a_job_waits_and_does_not_wait_for_it(connected, samples, job_file, monkeypatch):
    monkeypatch.setattr(jobs, "DECISION_S", 0.2)
    connected.on("POST", "jobs", samples.job("queued"), status=201)
    never = Reason(code="cpu", text="worker-0 asks for 64 cores, no node has more than 4", forever=True)
    connected.on("GET", f"jobs/{samples.id}", samples.job("queued", waiting=never))
    said = ces("submit", job_file).stdout.splitlines()[1]
    assert said.startswith(f"it waits: {never.text}; no job's end can change that")
    assert json.loads(ces("submit", job_file, "-o", "json").stdout)["waiting"]["forever"] is True
    for silent in (samples.job("queued"), samples.problem(500, "Internal error")):
        connected.on("GET", f"jobs/{samples.id}", silent)
        said = ces("submit", job_file).stdout.splitlines()[1]
        assert said == f"not decided yet; `ces describe job {samples.id}` shows how it goes"


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


def test_a_job_without_any_place_is_not_waited_for(connected, samples, job_file, monkeypatch):
    monkeypatch.setattr(attach, "HOPELESS_S", 0.0)
    follow(connected, samples, samples.job("queued", waiting=FOREVER))
    result = ces("submit", job_file, "--wait", code=2)
    assert "the tasks need 9 cores" in result.stderr
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


def test_plan_tells_a_place_or_why_there_is_none(connected, samples, job_file):
    answer = PlanAnswer(feasible=True, version=1, solver="greedy", assignments={"worker-0": "n0", "worker-1": "n1"})
    connected.on("POST", "plans", answer)
    assert "digits has a place" in ces("plan", job_file).stdout
    connected.on("POST", "plans", PlanAnswer(feasible=False, version=1, solver="greedy", reason=FOREVER))
    assert "the tasks need 9 cores" in ces("plan", job_file, code=2).stdout
    assert json.loads(ces("plan", job_file, "-o", "json", code=2).stdout)["feasible"] is False


def test_a_wrong_file_never_leaves_the_machine(connected, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("name: x\ntasks: [{name: w, comand: [x]}]\n")
    said = ces("submit", path, code=2).stderr
    assert "bad.yaml is not valid" in said
    assert "tasks[0].comand" in said
    assert "remedy: perhaps 'command' was meant" in said
    error = json.loads(ces("submit", path, "-o", "json", code=2).stdout)["error"]
    assert error["errors"][0]["field"] == "tasks[0].comand"
    assert connected.requests == []


def test_refusals_and_silence_end_with_two(connected, samples, job_file):
    wrong = [{"field": "tasks.0.image", "problem": "not allowed [x]", "remedy": "use another"}]
    connected.on("POST", "jobs", samples.problem(422, "Invalid input", "see fields", wrong))
    said = ces("submit", job_file, code=2).stderr
    assert "error: Invalid input: see fields" in said
    assert "tasks.0.image: not allowed [x]\n    remedy: use another" in said
    connected.on("GET", "jobs", httpx.ConnectError("Connection refused"))
    said = ces("get", "jobs", code=2).stderr
    assert f"No answer from {samples.url}" in said
    assert "remedy: check that the manager runs there" in said
    assert json.loads(ces("get", "jobs", "--output=json", code=2).stdout)["error"]["type"] == "ces:unreachable"


def test_flows_are_shown_once_or_until_their_job_is_over(connected, samples, monkeypatch):
    monkeypatch.setattr("ces_client.cli.watching.time.sleep", lambda _: None)

    def view(state):
        flows = [flow.model_dump() for flow in samples.job("running").flows]
        return JobFlowsView(id=samples.id, name="digits", state=state, at=samples.submitted, flows=flows)

    path = f"jobs/{samples.id}/flows"
    connected.on("GET", path, view("running"), view("running"), view("succeeded"))
    shown = ces("flows", samples.id, "--hops").stdout
    assert "worker-0 → worker-1  strict  10 Mbit/s  50 Mbit/s" in shown
    lines = ces("flows", samples.id, "--watch", "-o", "json").stdout.splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["running", "succeeded"]
    assert json.loads(ces("flows", samples.id, "-o", "json").stdout)["flows"][0]["bandwidth"] == 40_000_000


def test_a_name_stands_for_its_latest_job(connected, samples):
    connected.on(
        "GET", "jobs", [samples.job(id="older", submitted_at=samples.submitted.replace(hour=1)), samples.job()]
    )
    for what, method, path in [
        ("cancel", "DELETE", f"jobs/{samples.id}"),
        ("pause", "POST", f"jobs/{samples.id}/pause"),
        ("resume", "POST", f"jobs/{samples.id}/resume"),
    ]:
        connected.on(method, path, samples.job("running"), status=202)
        assert ces(what, "digits").stdout == f"{what} requested for digits ({samples.id}), now running\n"
        assert json.loads(ces(what, "digits", "-o", "json").stdout)["id"] == samples.id
        assert len(connected.sent(method, path)) == 2
    connected.on("DELETE", f"jobs/{samples.id}", samples.job("succeeded"), status=202)
    assert ces("cancel", "digits").stdout == f"nothing to cancel: digits ({samples.id}) has succeeded\n"
    connected.on("GET", "jobs", [])
    assert "No job is named digits" in ces("cancel", "digits", code=2).stderr


def test_describe(connected, samples):
    connected.on("GET", f"jobs/{samples.id}", samples.job("running", round_=3))
    connected.on("GET", "nodes", [samples.node("n0"), samples.node("n1")])
    connected.on(
        "GET", "links", [LinkView(src=s, dst="s0", bandwidth=10**9, reserved=0, kind="veth") for s in ("n0", "n1")]
    )
    assert "when cut off" in ces("describe", "job", samples.id).stdout
    assert json.loads(ces("describe", "job", samples.id, "-o", "json").stdout)["plan"] is None
    shown = ces("describe", "node", "n1").stdout
    assert "n1 › s0" in shown
    assert "n0 › s0" not in shown
    assert "nodes are n0, n1" in ces("describe", "node", "n9", code=2).stderr


def test_logs(connected, samples):
    path = f"jobs/{samples.id}/logs"
    connected.on("GET", path, httpx.Response(200, text="worker-0 | a [red]b[/]\nworker-1 | c | d\n"))
    assert ces("logs", samples.id).stdout == "worker-0 | a [red]b[/]\nworker-1 | c | d\n"
    lines = [json.loads(line) for line in ces("logs", samples.id, "-o", "json").stdout.splitlines()]
    assert lines[1] == {"task": "worker-1", "line": "c | d"}
    connected.on("GET", path, httpx.Response(200, text="plain | line\n"))
    assert ces("logs", samples.id, "worker-0", "-f").stdout == "plain | line\n"
    assert dict(connected.requests[-1].url.params) == {"follow": "true", "task": "worker-0"}
    assert json.loads(ces("logs", samples.id, "worker-0", "-o", "json").stdout)["task"] == "worker-0"
