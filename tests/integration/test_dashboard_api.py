"""What the dashboard needs of the API: its files, sessions, and the live picture."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx_sse import ServerSentEvent, aconnect_sse
from manager_world import sqlite_url
from rest_api import Api, join, running_api

from ces_manager.access import sessions
from ces_manager.api import auth
from ces_manager.live import event_pages
from ces_manager.usage_history import EVERY_S

PATIENCE_S = 30.0


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
async def stranger(api_on_either: Api) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=api_on_either.http.base_url, timeout=20) as http:
        yield http


async def code_of(http: httpx.AsyncClient, token: str | None = None) -> str:
    answer = await http.post("/v1/sessions/codes", headers=None if token is None else bearer(token))
    assert answer.status_code == 201, answer.text
    code: str = answer.json()["code"]
    return code


async def opened(stranger: httpx.AsyncClient, code: str) -> dict[str, Any]:
    answer = await stranger.post("/v1/sessions", json={"code": code})
    assert answer.status_code == 201, answer.text
    session: dict[str, Any] = answer.json()
    return session


@pytest.mark.parametrize("ui", [True, False])
async def test_the_dashboard_can_be_switched_off(tmp_path: Path, ui: bool) -> None:
    async with running_api(tmp_path, sqlite_url(tmp_path), ui=ui) as api:
        assert (await api.http.get("/ui/")).status_code == (200 if ui else 404)
        assert (await api.http.get("/")).status_code == (307 if ui else 404)
        assert (await api.http.get("/v1/whoami")).status_code == 200


async def test_a_code_begins_one_session_with_the_rights_of_its_token(
    api_on_either: Api, stranger: httpx.AsyncClient
) -> None:
    asked = {"name": "eve", "role": "submitter", "tenants": ["red"], "max_priority": 7}
    token = (await api_on_either.http.post("/v1/tokens", json=asked)).json()["token"]
    code = await code_of(stranger, token)
    session = await opened(stranger, code)
    who = (await stranger.get("/v1/whoami", headers=bearer(session["token"]))).json()
    assert who == session["identity"]
    assert (who["name"], who["role"], who["tenants"], who["max_priority"]) == ("eve", "submitter", ["red"], 7)
    again = await stranger.post("/v1/sessions", json={"code": code})
    assert (again.status_code, "was used" in again.json()["detail"]) == (403, True)
    for wrong in (code, session["token"].replace("session", "code"), "ces_code_nonsense"):
        assert (await stranger.get("/v1/whoami", headers=bearer(wrong))).status_code == 401
        assert (await stranger.post("/v1/sessions", json={"code": wrong})).status_code == 403


async def test_a_session_makes_no_other_and_ends_when_it_is_signed_out(
    api_on_either: Api, stranger: httpx.AsyncClient
) -> None:
    session = await opened(stranger, await code_of(api_on_either.http))
    mine = bearer(session["token"])
    refused = await stranger.post("/v1/sessions/codes", headers=mine)
    assert (refused.status_code, "access token" in refused.json()["detail"]) == (409, True)
    assert (await stranger.delete("/v1/sessions/mine", headers=mine)).status_code == 204
    assert (await stranger.get("/v1/whoami", headers=mine)).status_code == 401
    none = await api_on_either.http.delete("/v1/sessions/mine")
    assert (none.status_code, "no session" in none.json()["detail"]) == (409, True)


async def test_a_session_ends_with_the_token_that_it_came_from(api_on_either: Api, stranger: httpx.AsyncClient) -> None:
    asked = {"name": "eve", "role": "operator", "lasts": "1h"}
    token = (await api_on_either.http.post("/v1/tokens", json=asked)).json()
    session = await opened(stranger, await code_of(stranger, token["token"]))
    assert session["expires_at"] == token["access"]["expires_at"]  # in an hour, not in twelve
    mine = bearer(session["token"])
    assert (await stranger.get("/v1/whoami", headers=mine)).status_code == 200
    assert (await api_on_either.http.delete("/v1/tokens/eve")).status_code == 200
    refused = await stranger.get("/v1/whoami", headers=mine)
    assert (refused.status_code, "eve, was revoked" in refused.json()["detail"]) == (401, True)


async def test_codes_and_sessions_end_by_themselves(
    api_on_either: Api, stranger: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "CODE_LASTS", timedelta(0))
    late = await stranger.post("/v1/sessions", json={"code": await code_of(api_on_either.http)})
    assert (late.status_code, "older than a minute" in late.json()["detail"]) == (403, True)
    monkeypatch.undo()
    monkeypatch.setattr(sessions, "LASTS", timedelta(0))
    session = await opened(stranger, await code_of(api_on_either.http))
    over = await stranger.get("/v1/whoami", headers=bearer(session["token"]))
    assert (over.status_code, "has ended" in over.json()["detail"]) == (401, True)


async def test_whoever_guesses_codes_waits(stranger: httpx.AsyncClient) -> None:
    statuses = [(await stranger.post("/v1/sessions", json={"code": "guess"})).status_code for _ in range(60)]
    assert statuses[:50] == [403] * 50
    assert 429 in statuses[50:]


async def test_the_page_is_served_to_anybody_under_a_strict_policy(
    api_on_either: Api, stranger: httpx.AsyncClient
) -> None:
    assert (await stranger.get("/")).headers["location"] == auth.UI
    page = await stranger.get(auth.UI)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["content-encoding"] == "gzip"
    again = await stranger.get(auth.UI, headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    plain = await stranger.get(auth.UI, headers={"Accept-Encoding": "identity"})
    assert ("content-encoding" in plain.headers, plain.text) == (False, page.text)


@pytest.mark.parametrize("path", ["nowhere.js", "__init__.py", "..%2fapi%2fapp.py", "../api/app.py", "%2e%2e/text.py"])
async def test_nothing_but_the_page_is_served(stranger: httpx.AsyncClient, path: str) -> None:
    assert (await stranger.get(auth.UI + path)).status_code in (401, 404)


@asynccontextmanager
async def live(http: httpx.AsyncClient, **headers: str) -> AsyncIterator[AsyncGenerator[ServerSentEvent, None]]:
    async with (
        asyncio.timeout(PATIENCE_S),
        aconnect_sse(http, "GET", "/v1/live", headers=headers) as source,
        aclosing(source.aiter_sse()) as events,
    ):
        yield events


async def frames(api: Api, count: int, **headers: str) -> list[tuple[str, str, dict[str, Any]]]:
    async with live(api.http, **headers) as events:
        told = [await anext(events) for _ in range(count)]
    return [(event.id, event.event, json.loads(event.data)) for event in told]


def said_only(view: dict[str, Any], record: dict[str, Any]) -> set[str]:
    """What a list says of something and the picture does not."""
    return {field for field, value in view.items() if value is not None} - set(record)


async def test_the_live_picture_shows_nodes_links_and_jobs_as_lists_do(api_on_either: Api) -> None:
    api = api_on_either
    for node in ("n1", "n2"):
        token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
        assert (await join(api, token, node, labels={"site": "<b>"})).status_code == 200
    topology = {
        "links": [{"src": "n1", "dst": "n2", "bandwidth": "10Mbit", "medium": "air"}],
        "media": [{"name": "air", "bandwidth": "20Mbit"}],
    }
    assert (await api.http.put("/v1/topology", json=topology)).status_code == 200
    job = await api.submit(name="mine")
    await api.heard("n1")
    ((_, kind, whole),) = await frames(api, 1)
    assert kind == "keyframe"
    nodes = {node.pop("name"): node for node in (await api.http.get("/v1/nodes")).json()["items"]}
    for name, record in whole["nodes"].items():
        assert record == {field: nodes[name][field] for field in record}
        assert said_only(nodes[name], record) <= {"last_heartbeat", "allocations"}
    links = {f"{each['src']}>{each['dst']}": each for each in (await api.http.get("/v1/links")).json()["items"]}
    assert whole["links"].keys() == links.keys() == {"n1>n2", "n2>n1"}
    for name, record in whole["links"].items():
        assert record == {field: links[name][field] for field in record}
        assert said_only(links[name], record) == {"src", "dst"}
    assert whole["media"] == {"air": 20_000_000}
    summary = (await api.http.get("/v1/jobs")).json()["items"][0]
    assert whole["jobs"] == {
        job["id"]: {field: value for field, value in summary.items() if field != "id" and value is not None}
    }
    assert whole["counts"] == {"queued": 1}


async def test_changes_come_as_they_happen_and_a_stream_resumes(api_on_either: Api) -> None:
    api = api_on_either
    job = await api.submit(name="mine")
    async with live(api.http) as events:
        first = await anext(events)
        assert (await api.http.delete(f"/v1/jobs/{job['id']}")).status_code == 202
        event = await anext(events)
        while "jobs" not in (seen := json.loads(event.data)):
            event = await anext(events)
        assert (event.event, seen["jobs"], seen["counts"]["cancelled"]) == ("change", {job["id"]: None}, 1)
        ((_, kind, _),) = await frames(api, 1, **{"Last-Event-ID": first.id})
        assert kind == "change"
    ((_, kind, _),) = await frames(api, 1, **{"Last-Event-ID": "from.1"})
    assert kind == "keyframe"


async def test_a_session_that_is_signed_out_hears_no_more(api_on_either: Api, stranger: httpx.AsyncClient) -> None:
    session = await opened(stranger, await code_of(api_on_either.http))
    mine = bearer(session["token"])
    async with live(stranger, **mine) as events:
        await anext(events)
        async with httpx.AsyncClient(base_url=stranger.base_url) as other:
            assert (await other.delete("/v1/sessions/mine", headers=mine)).status_code == 204
        async for _ in events:
            pass  # until it ends


async def test_positions_are_kept_beside_others_and_those_of_nobody_are_left_out(api_on_either: Api) -> None:
    api = api_on_either
    assert (
        await api.http.put("/v1/topology", json={"links": [{"src": "a", "dst": "b", "bandwidth": "1Mbit"}]})
    ).is_success
    first = await api.http.put("/v1/layout", json={"positions": {"a": [1, -2.5], "nobody": [0, 0]}})
    assert first.json() == {"positions": {"a": [1.0, -2.5]}}
    await api.http.put("/v1/layout", json={"positions": {"b": [3, 4]}})
    await api.http.put("/v1/layout", json={"positions": {"a": [9, 9]}})
    assert (await api.http.get("/v1/layout")).json() == {"positions": {"a": [9.0, 9.0], "b": [3.0, 4.0]}}
    for wrong in ([1], ["x", 1], [1e300, 0], [None, 0]):
        await api.refused("PUT", "/v1/layout", 422, json={"positions": {"a": wrong}})


@pytest.mark.parametrize("link", ["a", ">", "a>", ">b", "a>b>c", "a>" + "b" * 300])
async def test_what_is_no_link_is_refused_with_how_to_write_one(api: Api, link: str) -> None:
    problem = await api.refused("GET", "/v1/flows", 422, params={"link": link})
    assert "link" in problem["errors"][0]["field"]


async def test_kept_events_come_in_pages_the_newest_first(api_on_either: Api) -> None:
    api = api_on_either
    jobs = [(await api.submit(name=f"j{i}"))["id"] for i in range(5)]
    await api.http.put("/v1/topology", json={"links": []})
    found: list[int] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await api.http.get("/v1/events/page", params={"limit": "2", **cursor})).json()
        found += [each["number"] for each in page["items"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert found == list(range(found[0], 0, -1))
    assert len(found) > len(jobs)
    mine = (await api.http.get("/v1/events/page", params={"job": jobs[2], "kind": "ces.v1.job."})).json()["items"]
    assert [(each["event"]["type"], each["event"]["subject"]) for each in mine] == [("ces.v1.job.queued", jobs[2])]
    none = (await api.http.get("/v1/events/page", params={"kind": "ces_v1%"})).json()
    assert none == {"items": [], "next": None}
    await api.refused("GET", "/v1/events/page", 422, params={"cursor": "0"})


async def test_a_page_looks_through_so_many_events_only(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_pages, "FAR", 3)
    first = (await api.submit(name="first"))["id"]
    for i in range(6):
        await api.submit(name=f"j{i}")
    pages, cursor = [], {}
    while True:
        page = (await api.http.get("/v1/events/page", params={"job": first, **cursor})).json()
        pages.append([each["number"] for each in page["items"]])
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert pages[0] == []
    assert sum(map(len, pages)) == 1


async def test_curves_and_samples_are_of_what_nodes_reported(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    assert (await join(api, token)).status_code == 200
    await api.heard("n1")
    assert (await api.http.get("/v1/samples", params={"node": "n1"})).json()["every_s"] == EVERY_S
    assert (await api.http.get("/v1/samples", params={"link": "n1>n2"})).json() == {
        "every_s": 0,
        "at": [],
        "values": {},
    }
    for which in ({}, {"node": "n1", "link": "n1>n2"}):
        assert "one of the two" in (await api.refused("GET", "/v1/samples", 422, params=which))["detail"]
    job = await api.submit(name="mine")
    curves = (await api.http.get(f"/v1/jobs/{job['id']}/progress")).json()
    assert curves == {"id": job["id"], "name": "mine", "tasks": {}}
