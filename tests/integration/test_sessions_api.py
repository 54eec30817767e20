"""Sessions of others: who sees them, who ends them, and that the log tells."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from httpx_sse import aconnect_sse
from rest_api import Api


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def token_of(api: Api, name: str, role: str) -> str:
    asked = {"name": name, "role": role} | ({"tenants": ["red"]} if role in ("viewer", "submitter") else {})
    token: str = (await api.http.post("/v1/tokens", json=asked)).json()["token"]
    return token


async def session_of(api: Api, token: str) -> tuple[str, str]:
    """Its id and its token."""
    code = (await api.http.post("/v1/sessions/codes", headers=bearer(token))).json()["code"]
    async with httpx.AsyncClient(base_url=api.http.base_url, timeout=20) as browser:
        begun = (await browser.post("/v1/sessions", json={"code": code})).json()
    return begun["identity"]["session"], begun["token"]


async def status(api: Api, token: str) -> int:
    return (await api.http.get("/v1/whoami", headers=bearer(token))).status_code


async def told(api: Api) -> list[dict[str, Any]]:
    """What the log says of sessions."""
    page = (await api.http.get("/v1/events/page?kind=ces.v1.session.")).json()
    return [each["event"] for each in reversed(page["items"])]


async def test_an_operator_sees_and_ends_sessions_of_others(api_on_either: Api) -> None:
    api = api_on_either
    operator, viewer = await token_of(api, "ops", "operator"), await token_of(api, "eve", "viewer")
    session, secret = await session_of(api, viewer)
    await api.http.post("/v1/sessions/codes", headers=bearer(viewer))
    listed = (await api.http.get("/v1/sessions", headers=bearer(operator))).json()
    code, open_one = listed["items"]
    assert (code["holder"], code["opened_at"]) == ("eve", None)
    assert (open_one["id"], open_one["holder"], open_one["role"]) == (session, "eve", "viewer")
    assert open_one["tenants"] == ["red"]
    assert open_one["opened_at"] < open_one["expires_at"]
    assert secret not in str(listed)
    page = (await api.http.get("/v1/sessions?limit=1")).json()
    assert page["next"] == code["id"]
    assert (await api.http.get(f"/v1/sessions?cursor={page['next']}")).json()["items"] == [open_one]
    assert await status(api, secret) == 200
    ended = await api.http.delete(f"/v1/sessions/{session}", headers=bearer(operator))
    assert ended.status_code == 204
    assert await status(api, secret) == 401
    begun, over = await told(api)
    assert (begun["type"], begun["subject"], begun["actor"]) == ("ces.v1.session.begun", session, "eve")
    assert begun["data"] == {"holder": "eve", "role": "viewer", "tenants": ["red"]}
    assert (over["type"], over["subject"], over["actor"]) == ("ces.v1.session.ended", session, "ops")
    await api.refused("DELETE", f"/v1/sessions/{session}", 404, headers=bearer(operator))
    await api.http.delete(f"/v1/sessions/{code['id']}", headers=bearer(operator))
    assert len(await told(api)) == 2, "nobody heard that there was a code"


async def test_who_may_do_less_ends_no_session_of_others_and_lists_none(api: Api) -> None:
    operator, submitter = await token_of(api, "ops", "operator"), await token_of(api, "sub", "submitter")
    admin = await token_of(api, "boss", "admin")
    session, secret = await session_of(api, admin)
    own, own_secret = await session_of(api, submitter)
    problem = await api.refused("DELETE", f"/v1/sessions/{session}", 403, headers=bearer(operator))
    assert "this session has the role admin" in problem["detail"]
    await api.refused("DELETE", f"/v1/sessions/{session}", 404, headers=bearer(submitter))
    await api.refused("GET", "/v1/sessions", 403, headers=bearer(submitter))
    async with httpx.AsyncClient(base_url=api.http.base_url, timeout=20) as stranger:
        for method, path in (("GET", "/v1/sessions"), ("DELETE", f"/v1/sessions/{session}"), ("PUT", "/v1/sessions")):
            assert (await stranger.request(method, path)).status_code == 401
    assert await status(api, secret) == await status(api, own_secret) == 200
    assert (await api.http.delete(f"/v1/sessions/{own}", headers=bearer(submitter))).status_code == 204
    assert (await api.http.delete(f"/v1/sessions/{session}", headers=bearer(admin))).status_code == 204
    assert await status(api, secret) == await status(api, own_secret) == 401


@pytest.mark.timeout(120)
async def test_tenants_hear_of_no_session(api: Api) -> None:
    viewer = await token_of(api, "eve", "viewer")
    await session_of(api, viewer)
    job = (await api.submit(tenant="red"))["id"]
    async with httpx.AsyncClient(base_url=api.http.base_url, headers=bearer(viewer), timeout=20) as http:
        assert (await http.get("/v1/events/page?kind=ces.v1.session.")).json()["items"] == []
        async with aconnect_sse(http, "GET", "/v1/events") as source:
            async for event in source.aiter_sse():
                if event.event == "so-far":
                    break
                assert event.json()["subject"] == job
