"""What users and strangers get wrong: refused with the reason, nothing left behind, nobody falls over."""

from __future__ import annotations

import json
import re
import sqlite3
import uuid
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest
from fault_cluster import FaultCluster, recorded_job, wait_for
from foreign_messages import Said, event, say, stored

from ces_core.learned.policy import SHIPPED


def services_started(cluster: FaultCluster) -> dict[str, int]:
    return {name: cluster.cluster.supervisor.starts(name) for name in cluster.cluster.supervisor.names()}


def post(cluster: FaultCluster, body: object) -> httpx.Response:
    return httpx.post(
        f"{cluster.cluster.url}/v1/jobs",
        content=body if isinstance(body, bytes) else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {cluster.cluster.token}", "Content-Type": "application/json"},
        trust_env=False,
        timeout=30,
        verify=cluster.cluster.layout.tls() or False,
    )


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "No Good"}, "name"),
        ({"priority": 101}, "priority"),
        ({"tasks": []}, "tasks"),
        ({"tasks": [{"name": "w", "replicas": 0, "command": ["true"]}]}, "tasks.0.replicas"),
        ({"tasks": [{"name": "w", "command": ["true"], "resources": {"cpu": "much"}}]}, "tasks.0.resources.cpu"),
        ({"flows": {"topology": "ring", "bandwidth": {"min": "9Mbit", "max": "1Mbit"}}}, "flows.bandwidth"),
        ({"restarts": {}}, "restarts"),
    ],
)
def test_a_wrong_job_file_is_refused(cluster: FaultCluster, change: dict[str, object], field: str) -> None:
    jobs, events = len(list(cluster.client.jobs.list())), len(cluster.events())
    answer = post(cluster, {**recorded_job("wrong", 1), **change})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert field in [error["field"] for error in answer.json()["errors"]], answer.text
    assert (len(list(cluster.client.jobs.list())), len(cluster.events())) == (jobs, events)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"name": "\xff"}'])
def test_no_job_file_at_all_is_refused(cluster: FaultCluster, body: bytes) -> None:
    jobs = len(list(cluster.client.jobs.list()))
    assert post(cluster, body).status_code in (400, 422)
    assert len(list(cluster.client.jobs.list())) == jobs


def test_a_program_that_does_not_exist_ends_its_job(cluster: FaultCluster) -> None:
    job = recorded_job("no-program", 1, "hang")
    job["tasks"].append({"name": "x", "command": ["/no/such/program"], "resources": {"cpu": "200m"}})
    found = cluster.submit(job)
    view = cluster.await_state(found, "failed")
    assert "x-0 could not be started on" in (view.reason or "")
    assert "/no/such/program" in (view.reason or "")
    assert view.restarts == 0
    wait_for(lambda: not cluster.worker_pids(found), "its peers are stopped")


def test_a_policy_that_is_no_policy_leaves_the_placing_to_search(cluster: FaultCluster, tmp_path: Path) -> None:
    file = tmp_path / "policy.onnx"
    file.write_bytes(SHIPPED.read_bytes()[:1000])
    cluster.cluster.restart("scheduler", {"CES_SOLVER": "imitation", "CES_POLICY": str(file)})
    why = f"imitation could not be used: {file}: is no ONNX file, or not a whole one; export it again"
    answer: dict[str, str] = {}

    def ready() -> bool:
        with suppress(httpx.HTTPError):
            answer.update(httpx.get(cluster.cluster.layout.ready_url("scheduler"), timeout=10, trust_env=False).json())
        return answer.get("status") == "ready"

    try:
        wait_for(ready, "the scheduler is ready")
        assert answer["remark"] == why
        job = cluster.submit(recorded_job("misled", 0.1))
        cluster.finish(job)
        plan = cluster.client.jobs.plan(job)
        assert plan.solver == "search"
        assert (plan.considered["policy"], plan.considered["fallback"]) == (None, why)
        said = [line for line in cluster.cluster.files.log("scheduler").read_text().splitlines() if str(file) in line]
        assert len(said) == 1, said
    finally:
        cluster.cluster.restart("scheduler")


def test_a_job_that_can_never_fit_says_why(cluster: FaultCluster) -> None:
    job = recorded_job("too-big", 1, replicas=1)
    job["tasks"][0]["resources"]["cpu"] = "8"
    found = cluster.submit(job)
    wait_for(lambda: cluster.client.jobs.get(found).waiting is not None, "the reason is known")
    view = cluster.client.jobs.get(found)
    assert view.state == "queued"
    assert view.waiting is not None
    assert re.search(r"needs 8 cores on one node; the largest .*has 2", view.waiting.text)
    assert (view.waiting.resource, view.waiting.needed, view.waiting.available) == ("cpu", 8000, 2000)
    assert view.waiting.forever
    other = cluster.submit(recorded_job("beside-too-big", 0.5))
    cluster.finish(other)  # it is in nobody's way
    assert cluster.client.jobs.get(found).state == "queued"
    cluster.client.jobs.cancel(found)
    cluster.await_state(found, "cancelled")


def test_malformed_and_replayed_facts_change_nothing(cluster: FaultCluster) -> None:
    starts = services_started(cluster)
    layout = cluster.cluster.layout
    job = cluster.submit(recorded_job("replayed", 1))
    view = cluster.finish(job)
    plan = cluster.client.jobs.plan(job)
    again = {
        "plan": plan.plan,
        "job": job,
        "attempt": 1,
        "version": 1,
        "solver": "stranger",
        "assignments": plan.assignments,
        "flows": [{"src": f.src, "dst": f.dst, "bandwidth": f.rate, "path": f.path} for f in plan.flows],
    }
    subject = f"ces.v1.evt.plan.proposed.{job}"
    fresh = f"stranger-{uuid.uuid4().hex}"
    proposed: list[Said] = [
        (subject, b"", None),
        (subject, b"\xff\x00 no json", None),
        (subject, b"{}", None),
        (subject, b"[" * 5000, None),
        (subject, event("plan.proposed", job, {"job": job}, "half"), None),
        (subject, event("plan.unheard-of", job, again, "unknown-type"), None),
        (subject, event("plan.proposed", "another", again, "another-subject"), None),
        (subject, event("plan.proposed", job, again, "x" * 500), None),
        (
            "ces.v1.evt.plan.proposed.nobody",
            event("plan.proposed", "nobody", {**again, "job": "nobody"}, "nobody"),
            None,
        ),
        (subject, event("plan.proposed", job, again, plan.plan), None),  # under the id that it had
        (subject, event("plan.proposed", job, again, fresh), {"Nats-Msg-Id": fresh}),  # and under a new one
    ]
    ready = f"ces.v1.evt.network.ready.{job}"
    late: list[Said] = [(ready, event("network.ready", job, {"job": job, "attempt": 1}, f"late-{fresh}"), None)]
    manager = layout.credentials("manager")
    dead = stored(layout, manager, "manager", "CES_DEAD")
    say(layout, layout.credentials("scheduler"), "scheduler", proposed)
    say(layout, layout.credentials("network-ctl"), "network-ctl", late)
    wait_for(lambda: stored(layout, manager, "manager", "CES_DEAD") >= dead + 7, "malformed ones are dead letters")
    second = cluster.finish(cluster.submit(recorded_job("after-replay", 0.3)))
    assert second.attempt == 1
    assert cluster.client.jobs.get(job).model_dump() == view.model_dump()
    assert services_started(cluster) == starts


def test_what_agents_may_say_touches_their_own_node_alone(cluster: FaultCluster) -> None:
    starts = services_started(cluster)
    job = recorded_job("slandered", 2, replicas=2)
    job["tasks"][0]["constraints"] = {"labels": {"host": "n1"}}
    found = cluster.submit(job)
    view = cluster.await_state(found, "running")
    exited = [
        {"allocation": task.allocation, "incarnation": 1, "state": "exited", "exit_code": 1} for task in view.placement
    ]
    lie = json.dumps({"node": "n4", "generation": 10**9, "workers": exited}).encode()
    other = json.dumps({"node": "n1", "generation": 10**9, "workers": exited}).encode()
    layout = cluster.cluster.layout
    messages: list[Said] = [
        ("ces.v1.agent.n4.status", lie, None),
        ("ces.v1.agent.n4.status", other, None),
        *((f"ces.v1.agent.n4.{kind}", b"\xff{", None) for kind in ("status", "applied", "progress", "log")),
        ("ces.v1.agent.n4.progress", b"{}", None),
        ("ces.v1.agent.n1.status", other, None),  # the broker refuses it
        ("ces.v1.hb.n4", b"no heartbeat", None),
    ]
    say(layout, cluster.cluster.files.agent("n4") / "nats.creds", "n4", messages)
    view = cluster.finish(found)
    assert (view.attempt, view.restarts) == (1, 0)
    assert services_started(cluster) == starts


def test_idempotent_submission(cluster: FaultCluster) -> None:
    key = uuid.uuid4().hex
    job = recorded_job("once", 0.3)
    first = cluster.client.jobs.submit(job, idempotency_key=key)
    second = cluster.client.jobs.submit(job, idempotency_key=key)
    assert first.id == second.id
    cluster.finish(first.id)
    with closing(sqlite3.connect(f"file:{cluster.cluster.files.database}?mode=ro", uri=True)) as file:
        assert file.execute("SELECT count(*) FROM jobs WHERE name = ?", (first.name,)).fetchone() == (1,)
