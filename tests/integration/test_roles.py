"""What each role may do with what is its own tenant's, another's or nobody's: every route, generated from the API."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from fastapi.routing import APIRoute
from httpx_sse import aconnect_sse
from rest_api import JOB, Api, join

from ces_common import subjects
from ces_common.messages.adjustments import AdjustmentAnswer
from ces_common.messages.base import Message
from ces_common.messages.decompositions import DecompositionAnswer
from ces_common.messages.events import QueueStatus, Score
from ces_common.messages.policies import PolicyAnswer
from ces_common.messages.queries import PlanAnswer, QueueAnswer
from ces_common.rates import SenderRate
from ces_common.roles import Role
from ces_manager.api import auth
from ces_manager.api.app import ROUTERS, make_app
from ces_manager.api.auth import Requires, is_open
from ces_manager.api.context import Context
from ces_manager.api.failure_counts import BURST, FAILURES_PER_S

MINE, OTHER = "red", "blue"
BODIES: dict[str, Any] = {
    "/v1/jobs": JOB,
    "/v1/plans": JOB,
    "/v1/jobs/{job}/moves": {"task": "w-0", "to": "n1"},
    "/v1/jobs/{job}/users/{user}": {"at": {"node": "n1"}},
    "/v1/decompositions": {"graph": {"name": "g", "vertices": [{"name": "v"}]}},
    "/v1/topology": {"links": []},
    "/v1/nodes/tokens": {},
    "/v1/tokens": {"name": "another", "role": "operator"},
    "/v1/secrets/{secret}": {"value": "aHVzaA=="},
    "/v1/links/{src}/{dst}/probe": {"seconds": 0.2},
    "/v1/audits": {"version": "1", "began_at": "2026-01-01T09:00:00Z", "took_s": 1.0, "events": 0},
    "/v1/layout": {"positions": {"n1": [1.0, 2.0]}},
    "/v1/nodes/{node}/calendar": {"times": "Mon-Fri 08:00-18:00"},
}
SCORE = Score(fit=1.0, priority=0.0, waiting=0.0, share=0.0, total=1.0, scarce="cpu")
LACKS = {
    "/v1/tokens/{token}",
    "/v1/sessions/{session}",
    "/v1/links/{src}/{dst}",
    "/v1/links/{src}/{dst}/probe",
    "/v1/state",
    "/v1/audits/latest",
    "/v1/regions",
    "/v1/regions/holds",
    "/v1/audits/{audit}",
    "/v1/applicants/{node}",
    "/v1/jobs/{job}/users/{user}",
}  # there is no such token, link, audit or applicant, no other region; and no history is kept yet
ENDLESS = ("/events", "/logs", "/live")
FINAL = "forget"


def routes() -> Iterator[tuple[str, str, tuple[Role, ...]]]:
    """Method, path and the roles of which one is needed."""
    for route in (route for router in ROUTERS for route in router.routes):
        for method in route.methods if isinstance(route, APIRoute) else ():
            if is_open(method, route.path):
                continue
            needed = [each.dependency.roles for each in route.dependencies if isinstance(each.dependency, Requires)]
            assert len(needed) == 1, f"{route.path} does not say which role it needs"
            yield method, route.path, needed[0]


ROUTES = list(routes())


def test_no_address_is_left_out() -> None:
    described = make_app(cast(Context, None), lambda: None).openapi()["paths"]
    asked = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert {(method, path) for method, path, _ in ROUTES} == {each for each in asked if not is_open(*each)}


@dataclass
class Shop:
    """An API with a job of each tenant, each of which waits for both, a node, and a token of each role; those with a
    tenant are ``MINE``."""

    api: Api
    jobs: dict[str, str]
    tokens: dict[Role, str]

    def client(self, role: Role) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.tokens[role]}"}
        return httpx.AsyncClient(base_url=self.api.http.base_url, headers=headers, timeout=20)


@pytest.fixture
async def shop(api: Api) -> Shop:
    jobs = {tenant: (await api.submit(name=f"of-{tenant}", tenant=tenant))["id"] for tenant in (MINE, OTHER)}
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    assert (await join(api, token)).status_code == 200
    both = list(jobs.values())
    line = [QueueStatus(job=job, position=i, score=SCORE, held_by=both) for i, job in enumerate(reversed(both), 1)]
    forecast = PlanAnswer(feasible=False, version=1, solver="search", held_by=both)
    await _answers(api, "queue", QueueAnswer(version=1, statuses=line))
    await _answers(api, "plan", forecast)
    await _answers(api, "policy", PolicyAnswer())
    await _answers(api, "decompose", DecompositionAnswer(refusal="it cannot be"))
    await _answers(api, "adjust", AdjustmentAnswer(refusal="it cannot be"))
    for tenant in (MINE, OTHER):
        put = await api.http.put(f"/v1/secrets/secret-of-{tenant}?tenant={tenant}", json={"value": "aHVzaA=="})
        assert put.status_code == 200
    tokens = {}
    for role in Role:
        asked = {"name": f"a-{role}", "role": role} | ({"tenants": [MINE]} if role.has_tenants else {})
        tokens[role] = (await api.http.post("/v1/tokens", json=asked)).json()["token"]
    return Shop(api, jobs, tokens)


async def _answers(api: Api, question: str, answer: Message) -> None:
    """What a scheduler would say."""

    async def say(_: object) -> bytes:
        return answer.encode()

    await api.bus.serve(subjects.rpc("scheduler", question), say)


@pytest.mark.parametrize("tenant", [MINE, OTHER])
@pytest.mark.parametrize("role", list(Role))
async def test_every_route_for_every_role_and_tenant(shop: Shop, role: Role, tenant: str) -> None:
    for method, path, needed in sorted(ROUTES, key=lambda route: (FINAL in route[1], route[0] == "DELETE")):
        with soft(f"{method} {path}"):
            await check(shop, method, path, needed, role, tenant)


async def check(shop: Shop, method: str, path: str, needed: tuple[Role, ...], role: Role, tenant: str) -> None:
    """One cell of the matrix."""
    where = path.format(
        job=shop.jobs[tenant],
        node="n1",
        src="n1",
        dst="n1",
        token="nobody",
        secret="hub",
        session="none",
        audit="none",
        user="cam",
    )
    where += f"?tenant={tenant}" if "{secret}" in path else "?node=n1" if path == "/v1/samples" else ""
    body = {**JOB, "tenant": tenant} if path == "/v1/jobs" else BODIES.get(path)
    async with (
        shop.client(role) as http,
        http.stream(method, where, json=body if method in ("POST", "PUT") else None) as answer,
    ):
        status = answer.status_code
        text = "" if status == 200 and path.endswith(ENDLESS) else (await answer.aread()).decode()
    foreign = role.has_tenants and tenant == OTHER
    if not any(role.includes(each) for each in needed):
        assert (status, f"needs the role {' or '.join(needed)}" in text) == (403, True)
    elif foreign and "{job}" in path:
        assert (status, shop.jobs[OTHER] in text) == (404, True)
    elif foreign and ((path == "/v1/jobs" and method == "POST") or "{secret}" in path):
        assert (status, f"is for {MINE}, not for {OTHER}" in text) == (422, True)
    else:
        assert status in (200, 201, 202, 409) or (status == 404 and (path in LACKS or "has no plan yet" in text)), text
    if role.has_tenants:
        assert f"of-{OTHER}" not in text
        assert path != "/v1/secrets" or f"secret-of-{MINE}" in text
        assert tenant == OTHER or shop.jobs[OTHER] not in text


@contextmanager
def soft(cell: str) -> Iterator[None]:
    """Names the cell that fails."""
    try:
        yield
    except AssertionError as error:
        error.add_note(cell)
        raise


@pytest.fixture
async def viewer(shop: Shop) -> AsyncIterator[httpx.AsyncClient]:
    async with shop.client(Role.VIEWER) as http:
        yield http


def test_an_auditor_may_do_what_an_audit_needs_and_no_more() -> None:
    may = {(method, path) for method, path, needed in ROUTES if any(Role.AUDITOR.includes(each) for each in needed)}
    reads = {"/v1/whoami", "/v1/events", "/v1/topology", "/v1/jobs", "/v1/jobs/{job}"}
    audits = {"/v1/audits", "/v1/audits/latest", "/v1/audits/{audit}"}
    assert may == {("GET", path) for path in reads | audits} | {("POST", "/v1/audits")}
    assert [role for role in Role if role.includes(Role.AUDITOR)] == [Role.AUDITOR, Role.OPERATOR, Role.ADMIN]


async def test_lists_streams_and_the_queue_show_ones_own_tenant_alone(shop: Shop, viewer: httpx.AsyncClient) -> None:
    for path in ("/v1/jobs", "/v1/queue"):
        assert [each["name"] for each in (await viewer.get(path)).json()["items"]] == [f"of-{MINE}"]
        assert len((await shop.api.http.get(path)).json()["items"]) == 2
    [entry] = (await viewer.get("/v1/queue")).json()["items"]
    assert entry["position"] == 2, "others' jobs count"
    held = entry["queue_status"]
    assert (held["held_by"], [each["name"] for each in held["holders"]]) == ([shop.jobs[MINE]], [f"of-{MINE}"])
    later = (await shop.api.submit(name="later", tenant=MINE))["id"]
    seen = []
    async with asyncio.timeout(60), aconnect_sse(viewer, "GET", "/v1/events") as source:
        async for event in source.aiter_sse():
            seen.append(event.json()["subject"])
            if event.json()["subject"] == later:
                break
    assert set(seen) == {shop.jobs[MINE], later}


async def test_a_job_belongs_to_the_tenant_of_its_token(shop: Shop) -> None:
    async with shop.client(Role.SUBMITTER) as http:
        view = (await http.post("/v1/jobs", json=JOB)).json()
        assert view["tenant"] == MINE
        assert (await http.delete(f"/v1/jobs/{view['id']}")).status_code == 202


async def test_a_secret_belongs_to_its_tenant_and_nobody_is_told_its_value(shop: Shop) -> None:
    value = "bWFya2Vy"
    needs = {"name": "needs", "tasks": [{"name": "w", "command": ["true"], "secrets": {"hub": {"from": "hub"}}}]}
    async with (
        shop.client(Role.SUBMITTER) as mine,
        shop.client(Role.VIEWER) as viewer,
        shop.client(Role.ADMIN) as admin,
    ):
        assert (await admin.put(f"/v1/secrets/hub?tenant={OTHER}", json={"value": value})).status_code == 200
        refused = await mine.post("/v1/jobs", json=needs)
        assert (refused.status_code, f"no secret hub in tenant {MINE}: create it with" in refused.text) == (422, True)
        assert (await mine.post("/v1/plans", json=needs)).status_code == 422
        assert (await mine.delete("/v1/secrets/hub")).status_code == 404
        view = await mine.put("/v1/secrets/hub", json={"value": value})
        assert (view.json()["tenant"], view.json()["updated_by"]) == (MINE, "a-submitter")
        job = (await mine.post("/v1/jobs", json=needs)).json()["id"]
        for http in (mine, viewer, admin):
            texts = [view.text] + [
                (await http.get(path)).text for path in ("/v1/secrets", f"/v1/jobs/{job}", "/v1/secrets?limit=1")
            ]
            assert not [text for text in texts if value in text or "marker" in text]
            names = {(each["tenant"], each["name"]) for each in (await http.get("/v1/secrets")).json()["items"]}
            assert ((OTHER, "hub") in names) == (http is admin)
            assert (MINE, "hub") in names
        wrong = await mine.put("/v1/secrets/hub", json={"value": "marker, no base64"})
        assert (wrong.status_code, "marker" in wrong.text) == (422, False)
        assert (await mine.put("/v1/secrets/.hub", json={"value": value})).status_code == 422
        seen = []
        async with asyncio.timeout(60), aconnect_sse(admin, "GET", "/v1/events") as source:
            async for event in source.aiter_sse():
                seen.append(event.data)
                if event.json()["subject"] == job:
                    break
        [stored] = [each for each in seen if "secret.stored" in each and "a-submitter" in each]
        assert f'"tenant":"{MINE}","name":"hub"' in stored
        assert not [each for each in seen if value in each]


async def test_changes_carry_who_asked_for_them(shop: Shop) -> None:
    async with shop.client(Role.SUBMITTER) as http:
        job = (await http.post("/v1/jobs", json=JOB)).json()["id"]
        async with asyncio.timeout(60), aconnect_sse(http, "GET", f"/v1/jobs/{job}/events") as source:
            async for event in source.aiter_sse():
                assert event.json()["actor"] == "a-submitter"
                break


async def test_a_revoked_token_ends_what_was_begun_with_it(shop: Shop) -> None:
    async with shop.client(Role.OPERATOR) as http, asyncio.timeout(60), http.stream("GET", "/v1/events") as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) is not None
        assert (await shop.api.http.delete("/v1/tokens/a-operator")).status_code == 200
        async for _ in lines:  # until it ends
            pass
        refused = await http.get("/v1/jobs")
    assert (refused.status_code, "a-operator, was revoked" in refused.text) == (401, True)


async def test_who_asks_too_often_waits_and_nobody_else(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shop.client(Role.VIEWER) as http:
        answers = [(await http.get("/v1/whoami")).status_code for _ in range(3)]
        assert answers == [200] * 3
        monkeypatch.setattr(SenderRate, "allows", lambda _self, sender, _now: sender != "a-viewer")
        answer = await http.get("/v1/jobs")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    async with shop.client(Role.SUBMITTER) as http:
        assert (await http.get("/v1/jobs")).status_code == 200


async def test_a_ceiling_of_priority_holds_for_what_is_said_and_left_out(shop: Shop) -> None:
    asked = {"name": "low", "role": "submitter", "tenants": [MINE, "green"], "max_priority": 20}
    token = (await shop.api.http.post("/v1/tokens", json=asked)).json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=shop.api.http.base_url, headers=headers, timeout=20) as http:
        view = (await http.post("/v1/jobs", json=JOB | {"tenant": "green"})).json()
        assert (view["tenant"], view["priority"]) == ("green", 20)
        for body, field in (
            (JOB, "tenant: say for which tenant of red, green"),
            (JOB | {"tenant": OTHER}, "tenant: token low is for red, green, not for blue"),
            (JOB | {"tenant": MINE, "priority": 21}, "priority: token low may submit jobs of priority 20 at most"),
        ):
            answer = await http.post("/v1/jobs", json=body)
            assert (answer.status_code, field in answer.text) == (422, True), answer.text
            assert (await http.post("/v1/plans", json=body)).status_code == 422


async def test_one_key_is_another_of_another_tenant(shop: Shop) -> None:
    key = {"Idempotency-Key": "build-1234"}
    http = shop.api.http
    first, again, other = [
        (await http.post("/v1/jobs", json=JOB | {"tenant": tenant}, headers=key)).json()["id"]
        for tenant in (MINE, MINE, OTHER)
    ]
    assert first == again
    assert first != other


async def test_wrong_tokens_are_slowed_down_and_those_that_are_known_are_not(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = time.monotonic() + BURST / FAILURES_PER_S  # by when all earlier failures are made up for
    monkeypatch.setattr(auth, "time", SimpleNamespace(monotonic=lambda: moment))  # or a second makes up for one

    async def ask(token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=shop.api.http.base_url, headers=headers, timeout=20) as http:
            return (await http.get("/v1/whoami")).status_code

    known = shop.tokens[Role.VIEWER]
    assert await ask(known) == 200
    assert [await ask("guess") for _ in range(BURST + 5)] == [401] * BURST + [429] * 5
    assert await ask(known) == 200
    assert await ask(shop.tokens[Role.OPERATOR]) == 429, "it was not seen before"
    assert (await shop.api.http.delete("/v1/tokens/a-viewer")).status_code == 200
    assert await ask(known) == 429, "it is known no more"
