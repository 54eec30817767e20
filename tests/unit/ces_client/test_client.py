"""The SDK against a manager in memory: what is sent and what comes back."""

from __future__ import annotations

import json

import httpx
import pytest

from ces_client import ApiError, UnexpectedAnswer, load_job
from ces_common.messages.api import NodeView, QueueEntry, TopologyFile


def test_submission_sends_what_the_user_wrote_and_the_token(client, manager, samples, job_file):
    manager.on("POST", "jobs", samples.job("queued"), status=201)
    view = client.jobs.submit(load_job(job_file))
    assert view.id == samples.id
    [request] = manager.requests
    assert request.headers["authorization"] == "Bearer secret"
    assert request.read() == (
        b'{"name":"digits","tasks":[{"name":"worker","replicas":2,"command":["python","-m","ces_workloads.train"]}],'
        b'"flows":{"topology":"ring","bandwidth":{"min":"10Mbit","max":"50Mbit"}}}'
    )


def test_a_lost_answer_is_asked_for_again_under_the_same_key(client, manager, samples, job_file):
    lost = httpx.ReadError("connection reset")
    manager.on("POST", "jobs", lost, samples.problem(503, "Unavailable"), samples.job("queued"))
    client.jobs.submit(load_job(job_file))
    keys = [request.headers["idempotency-key"] for request in manager.sent("POST", "jobs")]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    client.jobs.submit(load_job(job_file))
    assert manager.requests[-1].headers["idempotency-key"] != keys[0]


def test_something_else_at_the_url_is_told_apart(client, manager, samples):
    manager.on("GET", "topology", httpx.Response(200, text="<html>welcome</html>"))
    with pytest.raises(UnexpectedAnswer, match="GET /v1/topology"):
        client.topology.get()
    manager.on("GET", "topology", httpx.Response(404, text="no such page"))
    with pytest.raises(ApiError, match="no such page"):
        client.topology.get()


def test_lists_go_through_all_pages(client, manager, samples):
    first = {"items": [samples.job(name="a").model_dump(mode="json")], "next": "c1"}
    second = {"items": [samples.job(name="b").model_dump(mode="json")], "next": None}
    manager.on("GET", "jobs", first, second)
    assert [job.name for job in client.jobs.list(name="x")] == ["a", "b"]
    assert [dict(request.url.params) for request in manager.requests] == [{"name": "x"}, {"name": "x", "cursor": "c1"}]


def test_the_latest_job_of_a_name_is_the_one_submitted_last(client, manager, samples):
    older = samples.job(id="old")
    newer = samples.job(id="new", submitted_at=samples.submitted.replace(hour=10))
    manager.on("GET", "jobs", [older, newer, older])
    assert client.jobs.latest("digits").id == "new"
    manager.on("GET", "jobs", [])
    assert client.jobs.latest("digits") is None


def test_every_operation_reaches_its_endpoint(client, manager, samples):
    answers = {"version": 1, "nodes": [], "links": []}
    manager.on("PUT", "topology", answers)
    entry = QueueEntry(position=1, id="j1", name="digits", priority=50, submitted_at=samples.submitted)
    manager.on("GET", "queue", [entry])
    node = NodeView(
        name="n1",
        state="ready",
        cordoned=True,
        cpu=1,
        memory=1,
        gpu=0,
        cpu_allocated=0,
        memory_allocated=0,
        gpu_allocated=0,
        arch="arm64",
        runtime="process",
        network="tc",
        host_address="10.0.0.1",
        subnet="10.1.0.0/24",
    )
    for method, path, call in [
        ("DELETE", "jobs/j1", client.jobs.cancel),
        ("POST", "jobs/j1/pause", client.jobs.pause),
        ("POST", "jobs/j1/resume", client.jobs.resume),
    ]:
        manager.on(method, path, samples.job("running"), status=202)
        assert call("j1").state == "running"
    manager.on("POST", "jobs/j1/moves", samples.job("running"), status=202)
    assert client.jobs.move("j1", "worker-0", to="n1").state == "running"
    assert json.loads(manager.requests[-1].content) == {"task": "worker-0", "to": "n1"}
    nothing = {"certificate": {"text": "Nothing gains more.", "proven": True, "moves": 1}}
    manager.on("GET", "jobs/j1/adjustment", nothing)
    assert client.jobs.adjustment("j1", moves=1).adjustment is None
    for path, call in [
        ("nodes/n1/cordon", client.nodes.cordon),
        ("nodes/n1/uncordon", client.nodes.uncordon),
        ("nodes/n1/drain", client.nodes.drain),
    ]:
        manager.on("POST", path, node, status=202)
        assert call("n1").cordoned
    assert client.topology.put(TopologyFile()).version == 1
    assert list(client.queue()) == [entry]
    assert len(manager.requests) == 10


def test_ids_cannot_lead_out_of_their_place_in_the_path(client, manager):
    with pytest.raises(ApiError):
        client.jobs.get("../nodes/n1")
    assert manager.requests[0].url.raw_path == b"/v1/jobs/..%2Fnodes%2Fn1"


def test_logs_come_line_by_line(client, manager):
    manager.on("GET", "jobs/j1/logs", httpx.Response(200, text="worker-0 | one\nworker-1 | two\n"))
    assert list(client.jobs.logs("j1", follow=True)) == ["worker-0 | one", "worker-1 | two"]
    assert dict(manager.requests[0].url.params) == {"follow": "true"}
    list(client.jobs.logs("j1", "worker-0"))
    assert dict(manager.requests[1].url.params) == {"follow": "false", "task": "worker-0"}
    list(client.jobs.logs("j1", tail=0))
    assert dict(manager.requests[2].url.params) == {"follow": "false", "tail": "0"}


def test_the_last_lines_of_a_log(client, manager):
    text = "".join(f"line {i}\n" for i in range(100)) + "no newline\rat the end"
    manager.on("GET", "jobs/j1/logs", httpx.Response(200, text=text))
    found = client.jobs.last_log_lines("j1", "worker-0", count=2, within_s=5)
    assert found == ("line 99", "no newline\rat the end")
    assert dict(manager.requests[-1].url.params) == {"follow": "false", "task": "worker-0"}
    assert client.jobs.last_log_lines("j1", "worker-0", count=2, within_s=-1) == ()
