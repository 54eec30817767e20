"""Commands about one job: what they print, and their exit status."""

from __future__ import annotations

import json

import httpx
import pytest
from ces_command import ces

from ces_client.cli import jobs
from ces_common.messages.api import JobFlowsView, LinkView
from ces_common.messages.events import Reason
from ces_common.messages.queries import PlanAnswer


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


FOREVER = Reason(code="cpu-total", text="the tasks need 9 cores; all nodes together have 4 cores", forever=True)


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
    ces("logs", samples.id, "--tail", "5")
    assert dict(connected.requests[-1].url.params) == {"follow": "false", "tail": "5"}
    assert "--tail" in ces("logs", samples.id, "--tail", "-1", code=2).stderr


def test_a_line_of_a_log_keeps_what_is_no_newline(connected, samples):
    odd = "10%\r20%\fx\x85y\u2028z \x1b[1mbold\x1b[0m"
    path = f"jobs/{samples.id}/logs"
    connected.on("GET", path, httpx.Response(200, text=f"worker-0 | {odd}\nworker-1 | b\n"))
    found = [json.loads(line) for line in ces("logs", samples.id, "-o", "json").stdout.split("\n")[:-1]]
    assert found == [{"task": "worker-0", "line": odd}, {"task": "worker-1", "line": "b"}]
    assert ces("logs", samples.id, "--raw").stdout == f"worker-0 | {odd}\nworker-1 | b\n"
    shown = "10%\\x0d20%\\x0cx\\x85y\\u2028z \\x1b[1mbold\\x1b[0m"
    assert ces("logs", samples.id).stdout == f"worker-0 | {shown}\nworker-1 | b\n"


def test_what_is_so_already_is_not_requested(connected, samples):
    for what, method, path, state in [
        ("cancel", "DELETE", "", "cancelled"),
        ("pause", "POST", "/pause", "paused"),
        ("resume", "POST", "/resume", "running"),
    ]:
        connected.on("GET", f"jobs/{samples.id}", samples.job(state))
        connected.on(method, f"jobs/{samples.id}{path}", samples.job(state), status=202)
        assert ces(what, samples.id).stdout == f"nothing to do: digits ({samples.id}) is {state} already\n"


@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        ("starting", None, "starting"),
        ("done", None, "there"),
        ("kept", "node n2 is drained", "kept where it was; node n2 is drained"),
    ],
)
def test_a_task_is_moved_and_its_job_tells_how_far(connected, samples, state, reason, words):
    move = {
        "id": "m",
        "task": "worker-0",
        "kind": "stateful",
        "state": state,
        "source": "n0",
        "destination": "n2",
        "began_at": samples.submitted,
        "changed_at": samples.submitted,
        "reason": reason,
    }
    connected.on("POST", f"jobs/{samples.id}/moves", samples.job("running", move=move), status=202)
    said = f"worker-0 from n0 to n2: {words}"
    assert said in ces("move", samples.id, "worker-0", "--to", "n2").stdout
    connected.on("GET", f"jobs/{samples.id}", samples.job("running", move=move))
    assert said in ces("describe", "job", samples.id).stdout
    there = samples.job("running", move=move, remark="worker-0 of job digits runs on n2 already")
    connected.on("POST", f"jobs/{samples.id}/moves", there, status=202)
    assert ces("move", samples.id, "worker-0", "--to", "n2").stdout == "worker-0 of job digits runs on n2 already\n"


def test_describing_a_failed_job_shows_the_end_of_its_log(connected, samples):
    connected.on("GET", f"jobs/{samples.id}", samples.job("failed", reason="worker-0 on n0 exited with code 1"))
    connected.on("GET", f"jobs/{samples.id}/logs", httpx.Response(200, text="before\nValueError: x\n"))
    assert "worker-0 | ValueError: x" in ces("describe", "job", samples.id).stdout
    assert "ValueError" not in ces("describe", "job", samples.id, "-o", "json").stdout


def test_flows_are_shown_once_or_until_their_job_is_over(connected, samples, monkeypatch):
    monkeypatch.setattr("ces_client.cli.live_view.time.sleep", lambda _: None)

    def view(state):
        flows = [flow.model_dump() for flow in samples.job("running").flows]
        return JobFlowsView(id=samples.id, name="digits", state=state, at=samples.submitted, flows=flows)

    path = f"jobs/{samples.id}/flows"
    connected.on("GET", path, view("running"), view("running"), view("succeeded"))
    shown = ces("flows", samples.id, "--hops").stdout
    assert "worker-0 → worker-1  strict  10 Mbit/s  50 Mbit/s" in shown
    lines = ces("flows", samples.id, "--watch", "-o", "json").stdout.splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["running", "succeeded"]
    assert json.loads(ces("flows", samples.id, "-o", "json").stdout)["flows"][0]["rate"] == 40_000_000
