"""Jobs over the REST API: submitted, listed, cancelled, dry-run, and what is told of wrong ones."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest
from databases import new_database
from rest_api import JOB, Api, running_api

from ces_common.messages.events import QueueStatus, Reason, Score
from ces_common.messages.queries import PlanAnswer, QueueAnswer
from ces_common.queuefile import QueueFile
from ces_manager import database


async def test_a_job_is_submitted_read_listed_and_cancelled(api: Api) -> None:
    view = await api.submit()
    assert view["state"] == "queued"
    assert [task["name"] for task in view["placement"]] == ["worker-0", "worker-1", "worker-2"]
    assert view["flows"][0] | {"path": [], "enforced": False} == view["flows"][0]
    assert view["flows"][0]["min"] == 10_000_000
    again = (await api.http.get(f"/v1/jobs/{view['id']}")).json()
    assert again == view
    listed = (await api.http.get("/v1/jobs", params={"name": "ring"})).json()["items"]
    assert [job["id"] for job in listed] == [view["id"]]
    gone = await api.http.delete(f"/v1/jobs/{view['id']}")
    assert gone.status_code == 202
    assert gone.json()["state"] == "cancelled"


async def test_lists_page_by_cursor(api: Api) -> None:
    ids = [(await api.submit(name=f"job-{i}"))["id"] for i in range(5)]
    seen, cursor = [], None
    while True:
        params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await api.http.get("/v1/jobs", params=params)).json()
        assert len(page["items"]) <= 2
        seen += [job["id"] for job in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == list(reversed(ids))


async def test_the_same_idempotency_key_gives_the_same_job(api: Api) -> None:
    first = await api.http.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": "k1"})
    again = await api.http.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": "k1"})
    assert first.json()["id"] == again.json()["id"]
    assert len((await api.http.get("/v1/jobs")).json()["items"]) == 1
    other = {**JOB, "name": "other"}
    problem = await api.refused("POST", "/v1/jobs", 409, json=other, headers={"Idempotency-Key": "k1"})
    assert "new one" in problem["detail"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "Not A Name"}, "name"),
        ({"nmae": "ring"}, "nmae"),
        ({"priority": 101}, "priority"),
        ({"tasks": []}, "tasks"),
        ({"tasks": [{"name": "w", "command": ["x"], "resources": {"cpu": "lots"}}]}, "tasks.0.resources.cpu"),
        ({"tasks": [{"name": "w"}]}, "tasks.0"),
        ({"flows": {"topology": "ring", "bandwidth": {"min": "9Mbit", "max": "1Mbit"}}}, "flows.bandwidth"),
        (
            {
                "flows": {
                    "topology": "edges",
                    "edges": [{"src": "worker-0", "dst": "nobody-0", "bandwidth": {"min": "1Mbit", "max": "1Mbit"}}],
                }
            },
            "body",
        ),
    ],
)
async def test_a_wrong_job_is_refused_with_its_field_and_nothing_is_stored(
    api: Api, changes: dict[str, Any], field: str
) -> None:
    problem = await api.refused("POST", "/v1/jobs", 422, json={**JOB, **changes})
    assert field in [error["field"] for error in problem["errors"]]
    assert all(error["problem"] for error in problem["errors"])
    assert (await api.http.get("/v1/jobs")).json()["items"] == []


@pytest.mark.parametrize("path", ["", "/plan", "/logs", "/events"])
async def test_an_unknown_job_is_not_found(api: Api, path: str) -> None:
    problem = await api.refused("GET", f"/v1/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV{path}", 404)
    assert "01ARZ3NDEKTSV4RRFFQ69G5FAV" in problem["detail"]


async def test_a_job_that_does_not_run_cannot_be_paused(api: Api) -> None:
    view = await api.submit()
    problem = await api.refused("POST", f"/v1/jobs/{view['id']}/pause", 409)
    assert "queued" in problem["detail"]


async def test_a_task_of_a_job_that_does_not_run_cannot_be_moved(api: Api) -> None:
    path = f"/v1/jobs/{(await api.submit())['id']}/moves"
    problem = await api.refused("POST", path, 409, json={"task": "w-0", "to": "n1"})
    assert problem["detail"] == "job ring is queued; only tasks of a running job can be moved"
    for body, field in (
        ({"task": "w-0"}, "to"),
        ({"task": "w-0", "to": "a b"}, "to"),
        ({"task": "", "to": "n1"}, "task"),
    ):
        problem = await api.refused("POST", path, 422, json=body)
        assert [error["field"] for error in problem["errors"]] == [field]


async def test_flows_of_a_job_are_told_from_a_moment_on(api: Api) -> None:
    job = await api.submit()
    path = f"/v1/jobs/{job['id']}/flows"
    told = (await api.http.get(path, params={"since": "2030-01-01T00:00:00Z"})).json()
    assert (told["id"], told["state"], len(told["flows"])) == (job["id"], "queued", 3)
    assert {(flow["mode"], flow["max"], *flow["hops"]) for flow in told["flows"]} == {("strict", 50_000_000)}
    for since in ("yesterday", "2030-01-01T00:00:00"):
        problem = await api.refused("GET", path, 422, params={"since": since})
        assert problem["errors"][0]["field"] == "query.since"
    await api.refused("GET", "/v1/jobs/nothing/flows", 404)


async def test_a_dry_run_is_the_schedulers_answer_and_stores_nothing(api: Api) -> None:
    problem = await api.refused("POST", "/v1/plans", 503, json=JOB)
    assert "nobody answers" in problem["detail"]

    async def scheduler(_: object) -> bytes:
        return PlanAnswer(feasible=True, version=3, solver="greedy", assignments={"worker-0": "n1"}).encode()

    await api.bus.serve("ces.v1.rpc.scheduler.plan", scheduler)
    answer = (await api.http.post("/v1/plans", json=JOB)).json()
    assert answer["assignments"] == {"worker-0": "n1"}
    assert (await api.http.get("/v1/jobs")).json()["items"] == []


async def test_the_queue_is_as_the_scheduler_has_it_or_says_that_it_is_not(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ces_manager.queue.live.FRESH_S", 0.0)
    jobs = {
        name: (await api.submit(name=name, priority=p))["id"] for name, p in (("low", 10), ("high", 90), ("mid", 50))
    }
    page = (await api.http.get("/v1/queue")).json()
    assert [(entry["position"], entry["name"]) for entry in page["items"]] == [(1, "high"), (2, "mid"), (3, "low")]
    assert page["remark"].startswith("no scheduler is there: in order of priority and age")

    score = Score(fit=2, priority=-0.5, waiting=0, share=0, total=1.5, scarce="cpu")
    reason = Reason(code="cpu-total", text="the tasks need 9 cores", resource="cpu", needed=9000)
    told = [
        QueueStatus(job=jobs["low"], position=1, score=score, reason=reason, held_by=[jobs["mid"]], reserved=True),
        QueueStatus(job=jobs["high"], position=2, score=score),
    ]

    async def scheduler(_: object) -> bytes:
        return QueueAnswer(version=3, statuses=told).encode()

    await api.bus.serve("ces.v1.rpc.scheduler.queue", scheduler)

    page = (await api.http.get("/v1/queue")).json()
    assert page["remark"] is None
    assert [(entry["position"], entry["name"]) for entry in page["items"]] == [(1, "low"), (2, "high"), (3, "mid")]
    first = page["items"][0]
    assert first["reason"]["text"] == reason.text
    assert first["queue_status"]["holders"] == [{"id": jobs["mid"], "name": "mid"}]
    assert first["queue_status"]["score"]["total"] == 1.5
    view = (await api.http.get(f"/v1/jobs/{jobs['low']}")).json()
    assert view["queue_status"] == first["queue_status"]
    assert view["waiting"]["text"] == reason.text


async def test_a_dry_run_names_those_that_a_job_would_wait_for(api: Api) -> None:
    holder = (await api.submit(name="holder"))["id"]

    async def scheduler(_: object) -> bytes:
        return PlanAnswer(feasible=False, version=3, solver="s", position=4, held_by=[holder]).encode()

    await api.bus.serve("ces.v1.rpc.scheduler.plan", scheduler)
    answer = (await api.http.post("/v1/plans", json=JOB)).json()
    assert (answer["position"], answer["holders"]) == (4, [{"id": holder, "name": "holder"}])


async def test_a_job_of_an_unknown_tenant_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    queue = QueueFile.model_validate({"tenants": [{"name": "vision"}, {"name": "speech"}]})
    async with running_api(tmp_path, new_database("sqlite", tmp_path), queue) as api:
        assert (await api.submit(tenant="speech"))["tenant"] == "speech"
        for path in ("/v1/jobs", "/v1/plans"):
            problem = await api.refused("POST", path, 422, json={**JOB, "tenant": "nobody"})
            assert problem["errors"] == [
                {
                    "field": "tenant",
                    "problem": "no tenant is called 'nobody': name one of vision, speech, or have it added to the"
                    " tenants in CES_QUEUE",
                }
            ]
        problem = await api.refused("POST", "/v1/jobs", 422, json=JOB)
        assert "'default'" in problem["detail"], "who names no tenant is one, too"
        assert len((await api.http.get("/v1/jobs")).json()["items"]) == 1


async def test_where_no_tenant_is_listed_any_may_submit(api: Api) -> None:
    assert (await api.submit(tenant="anybody"))["tenant"] == "anybody"


async def test_users_come_again_where_too_many_wait_to_be_written_down(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "MAX_WAITING", 4)
    held = sqlite3.connect(tmp_path / "ces.db", isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    asked = [asyncio.create_task(api.http.post("/v1/jobs", json={**JOB, "name": f"j{i}"})) for i in range(12)]
    refused: list[httpx.Response] = []
    for answer in asyncio.as_completed(asked):
        refused.append(await answer)
        if len(refused) == 8:
            break
    held.execute("ROLLBACK")
    held.close()
    assert {answer.status_code for answer in refused} == {429}
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}
    assert {answer.headers["content-type"] for answer in refused} == {"application/problem+json"}
    statuses = [answer.status_code for answer in await asyncio.gather(*asked)]
    assert sorted(statuses) == [201] * 4 + [429] * 8
    await api.submit(name="later")
