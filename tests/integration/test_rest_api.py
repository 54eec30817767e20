"""What holds for all of the REST API: who is let in, what no request may contain, and events that resume."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from httpx_sse import aconnect_sse
from rest_api import TOKEN, Api

from ces_manager.api import limits


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/nodes", "/v1/events", "/v1/topology", "/v1/queue", "/nowhere"])
@pytest.mark.parametrize("header", [None, "Bearer wrong", "Basic " + TOKEN, TOKEN])
async def test_nothing_is_told_without_the_token(api: Api, path: str, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    async with httpx.AsyncClient(base_url=api.http.base_url) as stranger:
        answer = await stranger.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    sent = header is not None and header.startswith("Bearer ")
    remedy = "this token is not known here" if sent else "Authorization: Bearer"
    assert remedy in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/docs"])
async def test_health_and_description_are_open(api: Api, path: str) -> None:
    async with httpx.AsyncClient(base_url=api.http.base_url) as stranger:
        assert (await stranger.get(path)).status_code == 200


async def test_what_is_no_json_or_too_large_is_refused(api: Api) -> None:
    await api.refused("POST", "/v1/jobs", 400, content=b"{", headers={"Content-Type": "application/json"})
    await api.refused("POST", "/v1/jobs", 413, content=b" " * (1024 * 1024 + 1))

    async def unannounced() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 65536

    await api.refused("POST", "/v1/jobs", 413, content=unannounced())


async def sse(api: Api, path: str, count: int, **request: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """The first events that have numbers."""
    found = []
    async with aconnect_sse(api.http, "GET", path, **request) as source:
        async for event in source.aiter_sse():
            if event.event == "so-far":
                continue
            found.append((event.id, event.event, json.loads(event.data)))
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("holder", ["STREAMS_PER_ADDRESS", "STREAMS_PER_TOKEN"])
async def test_streams_beyond_the_limit_are_refused_until_one_ends(
    api: Api, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, holder, 2)
    job = (await api.submit())["id"]
    async with AsyncExitStack() as first, AsyncExitStack() as second:
        for opened, path in ((first, "/v1/events"), (second, f"/v1/jobs/{job}/logs?follow=true")):
            answer = await opened.enter_async_context(api.http.stream("GET", path))
            assert answer.status_code == 200
        for path in ("/v1/events", f"/v1/jobs/{job}/events", f"/v1/jobs/{job}/logs"):
            answer = await api.http.get(path)
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "5")
            assert "has 2 streams of events and logs open" in answer.json()["detail"]
        assert (await api.http.get("/v1/jobs")).status_code == 200
        await first.aclose()
        async with asyncio.timeout(60):
            while (await api.http.get(f"/v1/jobs/{job}/logs")).status_code == 429:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_events_are_numbered_and_resume_where_the_client_left_off(api: Api) -> None:
    jobs = [(await api.submit(name=f"job-{i}"))["id"] for i in range(4)]
    first = await sse(api, "/v1/events", 2)
    assert [kind for _, kind, _ in first] == ["ces.v1.job.queued"] * 2
    rest = await sse(api, "/v1/events", 2, headers={"Last-Event-ID": first[-1][0]})
    assert [data["subject"] for _, _, data in first + rest] == jobs
    numbers = [int(number) for number, _, _ in first + rest]
    assert numbers == sorted(set(numbers))
    assert all(data["sequence"] == int(number) for number, _, data in first + rest)


async def test_a_job_stream_tells_what_happens_next(api: Api) -> None:
    view = await api.submit()
    await api.submit(name="another")
    waiting = asyncio.create_task(sse(api, f"/v1/jobs/{view['id']}/events", 2))
    await api.http.delete(f"/v1/jobs/{view['id']}")
    events = await asyncio.wait_for(waiting, 60)
    assert [kind for _, kind, _ in events] == ["ces.v1.job.queued", "ces.v1.job.cancelled"]


async def test_a_wrong_event_number_is_refused(api: Api) -> None:
    problem = await api.refused("GET", "/v1/events", 422, headers={"Last-Event-ID": "yesterday"})
    assert problem["errors"][0]["field"] == "Last-Event-ID"


async def test_the_zero_character_names_nothing(api_on_either: Api) -> None:
    api = api_on_either
    for method, path in [
        ("GET", "/v1/jobs/%00"),
        ("DELETE", "/v1/jobs/01ARZ3NDEKTSV4RRFFQ69G5FA%00"),
        ("GET", "/v1/jobs/%00/logs"),
        ("GET", "/v1/jobs/%00/events"),
        ("POST", "/v1/nodes/n%001/cordon"),
    ]:
        problem = await api.refused(method, path, 404)
        assert problem["detail"] == "nothing has a zero character in its name"
    for path, field in [
        ("/v1/jobs?cursor=%00", "cursor"),
        ("/v1/jobs?limit=3&name=a%00", "name"),
        ("/v1/nodes?cursor=a%00b", "cursor"),
        ("/v1/links?cursor=%00", "cursor"),
        ("/v1/queue?cursor=1%00", "cursor"),
    ]:
        problem = await api.refused("GET", path, 422)
        assert [error["field"] for error in problem["errors"]] == [field]


async def test_numbers_that_no_database_can_compare_are_refused(api_on_either: Api) -> None:
    problem = await api_on_either.refused("GET", f"/v1/events?after={10**18}", 422)
    assert problem["errors"][0]["field"] == "query.after"
    await api_on_either.refused("GET", "/v1/queue?cursor=99999999999", 422)
