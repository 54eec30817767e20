"""Audits that are published over the API: what is kept of them, who sees which findings, and what is told unchanged."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from rest_api import Api

from ces_common.messages.audits import MAX_FINDINGS
from ces_manager import audits


def report(last: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "version": "0.1.0", "began_at": "2026-01-01T09:00:00Z", "took_s": 1.5, "events": last, "first": 1, "last": last
    } | more  # fmt: skip


def finding(event: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "event": event,
        "kind": "node-capacity",
        "text": "cpu of node n1: 5 of 4 is overbooked",
        "node": "n1",
    } | more


async def published(api: Api, **more: Any) -> dict[str, Any]:
    answer = await api.http.post("/v1/audits", json=report(**more))
    assert answer.status_code == 201, answer.text
    view: dict[str, Any] = answer.json()
    return view


async def client_of(api: Api, role: str, *tenants: str) -> httpx.AsyncClient:
    asked = {"name": f"a-{role}-{'-'.join(tenants)}".rstrip("-"), "role": role} | (
        {"tenants": list(tenants)} if tenants else {}
    )
    token = (await api.http.post("/v1/tokens", json=asked)).json()["token"]
    return httpx.AsyncClient(base_url=api.http.base_url, headers={"Authorization": f"Bearer {token}"}, timeout=20)


async def test_what_is_published_is_kept_with_who_did_it(api_on_either: Api) -> None:
    api = api_on_either
    job = (await api.submit(tenant="red"))["id"]
    await api.refused("GET", "/v1/audits/latest", 404)
    checked = {"log": 1, "held": 0}
    first = await published(
        api, last=1, checked=checked, peaks=[{"what": "cpu", "where": "n1", "used": 1, "capacity": 2, "event": 1}]
    )
    async with await client_of(api, "auditor") as auditor:
        answer = await auditor.post(
            "/v1/audits", json=report(last=1, kinds={"node-capacity": 7}, findings=[finding(1, job=job)], plans=3)
        )
        second = answer.json()
    assert (second["published_by"], second["findings_total"], second["plans"]) == ("a-auditor", 7, 3)
    assert second["findings"] == [finding(1, job=job) | {"link": None, "name": "ring", "tenant": "red"}]
    assert (first["checked"], second["checked"]) == (checked, {}), "an auditor of before does not tell"
    assert (await api.http.get("/v1/audits/latest")).json() == second
    assert (await api.http.get(f"/v1/audits/{first['id']}")).json() == first
    listed = (await api.http.get("/v1/audits")).json()
    assert [each["id"] for each in listed["items"]] == [second["id"], first["id"]]
    assert all("findings" not in each for each in listed["items"])
    page = (await api.http.get("/v1/audits?limit=1")).json()
    assert page["next"] == second["id"]
    rest = (await api.http.get(f"/v1/audits?limit=1&cursor={page['next']}")).json()
    assert ([each["id"] for each in rest["items"]], rest["next"]) == ([first["id"]], None)
    await api.refused("GET", "/v1/audits/none", 404)
    await api.refused("GET", "/v1/audits?cursor=none", 422)


async def test_a_tenant_sees_what_is_about_its_own_jobs_alone(api: Api) -> None:
    jobs = {tenant: (await api.submit(name=f"of-{tenant}", tenant=tenant))["id"] for tenant in ("red", "blue")}
    found = [finding(job=jobs["red"]), finding(job=jobs["blue"], kind="twice"), finding(job=None), finding(job="gone")]
    kinds = {"node-capacity": 30, "twice": 20}
    checked = {"node-capacity": 900, "twice": 70, "held": 0}
    whole = await published(api, findings=found, kinds=kinds, checked=checked, jobs={"queued": 2}, plans=4, held=5)
    assert whole["checked"] == checked
    assert (whole["findings_total"], whole["limited"], len(whole["findings"])) == (50, False, 4)
    for role in ("viewer", "submitter"):
        async with await client_of(api, role, "red") as http:
            view = (await http.get("/v1/audits/latest")).json()
            listed = (await http.get("/v1/audits")).json()["items"][0]
            one = (await http.get(f"/v1/audits/{whole['id']}")).json()
        assert one == view == listed | {"findings": view["findings"]}
        assert [each["job"] for each in view["findings"]] == [jobs["red"]]
        assert (view["kinds"], view["findings_total"], view["limited"]) == ({"node-capacity": 1}, 1, True)
        assert (view["jobs"], view["plans"], view["held"]) == ({}, None, None)
        assert view["checked"] == {"node-capacity": None, "twice": None, "held": 0}, "whether, and not how often"
    async with await client_of(api, "viewer", "red", "blue") as http:
        assert (await http.get("/v1/audits/latest")).json()["kinds"] == {"node-capacity": 1, "twice": 1}


@pytest.mark.parametrize(
    ("wrong", "field", "problem"),
    [
        ({"last": 99}, "last", "this audit is of another cluster"),
        ({"first": 2, "last": 1}, "body", "in this order"),
        ({"last": None}, "body", "in this order"),
        ({"findings": [finding(event=3)], "kinds": {"node-capacity": 1}}, "body", "findings[0].event"),
        ({"findings": [finding()]}, "body", "1 of node-capacity are listed"),
        ({"findings": [finding()] * (MAX_FINDINGS + 1), "kinds": {"node-capacity": 201}}, "findings", "200"),
        ({"findings": [finding(text="x" * 501)], "kinds": {"node-capacity": 1}}, "findings.0.text", "500"),
        ({"findings": [finding(text="a\0b")], "kinds": {"node-capacity": 1}}, "findings.0.text", "null"),
        ({"findings": [finding(link="n1")], "kinds": {"node-capacity": 1}}, "findings.0.link", "match"),
        ({"kinds": {"Over booked": 1}}, "kinds", "match"),
        ({"kinds": {"node-capacity": -1}}, "kinds.node-capacity", "at least 0"),
        ({"unjudged": ["x"] * 33}, "unjudged", "32"),
        ({"checked": {"log": -1}}, "checked.log", "at least 0"),
        ({"checked": {f"p{chr(97 + i % 26)}{chr(97 + i // 26)}": 1 for i in range(33)}}, "checked", "32"),
        (
            {"checked": {"node-capacity": 0}, "kinds": {"node-capacity": 1}},
            "body",
            "how often node-capacity was",
        ),
        ({"began_at": "2026-01-01T09:00:00"}, "began_at", "time zone"),
        ({"took_s": -1}, "took_s", "at least 0"),
        ({"more": 1}, "more", "unknown"),
    ],
)
async def test_a_report_that_makes_no_sense_is_refused_with_its_field(
    api: Api, wrong: dict[str, Any], field: str, problem: str
) -> None:
    await api.submit()
    await api.submit(name="other")
    refused = await api.refused("POST", "/v1/audits", 422, json=report() | wrong)
    assert refused["errors"][0]["field"].startswith(field)
    assert problem in refused["errors"][0]["problem"]
    assert (await api.http.get("/v1/audits")).json()["items"] == []


async def test_the_oldest_go_where_there_are_too_many(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await api.submit()
    monkeypatch.setattr(audits, "KEPT", 3)
    made = [(await published(api, last=1))["id"] for _ in range(5)]
    kept = [each["id"] for each in (await api.http.get("/v1/audits")).json()["items"]]
    assert set(kept) < set(made)
    assert len(kept) == 3


async def test_an_answer_that_is_known_is_not_told_again(api_on_either: Api) -> None:
    api, http = api_on_either, api_on_either.http
    await api.submit()
    await published(api, last=1)
    for path in ("/v1/jobs", "/v1/audits", "/v1/audits/latest"):
        first = await http.get(path)
        mark = first.headers["etag"]
        again = await http.get(path, headers={"If-None-Match": f'"other", {mark}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", mark)
        assert "private" in first.headers["cache-control"]
        other = await http.get(path, headers={"If-None-Match": '"other"'})
        assert (other.status_code, other.json()) == (200, first.json())
        async with httpx.AsyncClient(base_url=http.base_url, timeout=20) as stranger:
            assert (await stranger.get(path, headers={"If-None-Match": mark})).status_code == 401
    marks = {path: (await http.get(path)).headers["etag"] for path in ("/v1/jobs", "/v1/jobs?limit=1", "/v1/audits")}
    assert len(set(marks.values())) == 3
    job = (await api.submit(name="another"))["id"]
    await published(api, last=1)
    for path, mark in marks.items():
        assert (await http.get(path, headers={"If-None-Match": mark})).status_code == 200
    mark = (await http.get("/v1/jobs")).headers["etag"]
    await http.delete(f"/v1/jobs/{job}")
    assert (await http.get("/v1/jobs", headers={"If-None-Match": mark})).status_code == 200


async def test_one_tenants_mark_is_not_anothers(api: Api) -> None:
    await api.submit(tenant="red")
    async with await client_of(api, "viewer", "red") as red, await client_of(api, "viewer", "blue") as blue:
        mark = (await red.get("/v1/jobs")).headers["etag"]
        assert (await red.get("/v1/jobs", headers={"If-None-Match": mark})).status_code == 304
        assert (await blue.get("/v1/jobs", headers={"If-None-Match": mark})).status_code == 200
