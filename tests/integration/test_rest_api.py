"""The REST API over a real socket: what a client may rely on, and what it is told when it is wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from databases import KINDS, new_database
from httpx_sse import aconnect_sse
from sqlalchemy.engine import URL

from ces_common import subjects
from ces_common.bus import BusError, BusUnavailable, MemoryBroker, MemoryBus, Message, RemoteError
from ces_common.db import UnitOfWork, migrate, new_engine
from ces_common.health import serve_http
from ces_common.messages.queries import LinkProbe, LinkProbed, PlanAnswer
from ces_common.messages.reports import Heartbeat
from ces_common.natsauth import init_trust, load_signing_key, new_user_key
from ces_common.service import run_loops
from ces_manager.api.app import make_app
from ces_manager.api.context import Context
from ces_manager.api.streams import Bell
from ces_manager.desk import Desk
from ces_manager.liveness import Vigil
from ces_manager.measurements import Measurements
from ces_manager.messaging import Messaging
from ces_manager.policy import Policy
from ces_manager.probing import Probing
from ces_manager.relay import Relay
from ces_manager.revoking import Revoking

TOKEN = "a-token-for-tests-only"
JOB: dict[str, Any] = {
    "name": "ring",
    "tasks": [{"name": "worker", "replicas": 3, "command": ["true"], "resources": {"cpu": "500m", "memory": "64Mi"}}],
    "flows": {"topology": "ring", "bandwidth": {"min": "10Mbit", "max": "50Mbit"}},
}


class FakeClaims:
    """The broker's list of refused keys; ``error`` is what telling it meets."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.error: BusError | None = None

    async def revoke(self, users: Collection[str]) -> bool:
        if self.error is not None:
            raise self.error
        news = set(users) - self.refused
        self.refused |= news
        return bool(news)


@dataclass
class Api:
    http: httpx.AsyncClient
    bus: MemoryBus
    claims: FakeClaims

    async def submit(self, **changes: Any) -> dict[str, Any]:
        answer = await self.http.post("/v1/jobs", json={**JOB, **changes})
        assert answer.status_code == 201, answer.text
        view: dict[str, Any] = answer.json()
        return view

    async def refused(self, method: str, path: str, status: int, **request: Any) -> dict[str, Any]:
        answer = await self.http.request(method, path, **request)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        problem: dict[str, Any] = answer.json()
        assert problem["status"] == status
        assert problem["title"]
        return problem


@asynccontextmanager
async def running_api(folder: Path, url: URL) -> AsyncIterator[Api]:
    await asyncio.to_thread(migrate, url)
    uow = UnitOfWork(new_engine(url))
    trust = init_trust(folder / "trust")
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    desk, bell, policy, measurements = Desk(uow), Bell(), Policy(), Measurements()
    claims, vigil = FakeClaims(), Vigil()
    relay = Relay(uow, bus)
    desk.on_commit(relay.hint.set)
    desk.on_commit(bell.ring)
    context = Context(
        desk=desk,
        bus=bus,
        policy=policy,
        measurements=measurements,
        vigil=vigil,
        revoking=Revoking(desk, claims),
        probing=Probing(desk, bus),
        bell=bell,
        agent_signing_key=load_signing_key(trust.signing_key_file("agent")),
        agents_nats_urls=["nats://127.0.0.1:4222"],
    )
    await Messaging(desk, bus, policy, measurements, bell).start()
    stop = asyncio.Event()
    loops = asyncio.create_task(run_loops(stop, relay.run()))
    async with serve_http(make_app(context, TOKEN, lambda: None), "127.0.0.1", 0) as port:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=20) as http:
            yield Api(http, bus, claims)
        context.stopping.set()
        bell.ring()
    stop.set()
    await loops
    await bus.close()
    desk.close()
    uow.engine.dispose()


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(tmp_path, new_database("sqlite", tmp_path)) as made:
        yield made


@pytest.fixture(params=KINDS)
async def api_on_either(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Api]:
    """Where the databases differ in what they put up with."""
    async with running_api(tmp_path, new_database(request.param, tmp_path)) as made:
        yield made


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/nodes", "/v1/events", "/v1/topology", "/v1/queue", "/nowhere"])
@pytest.mark.parametrize("header", [None, "Bearer wrong", "Basic " + TOKEN, TOKEN])
async def test_nothing_is_told_without_the_token(api: Api, path: str, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    async with httpx.AsyncClient(base_url=api.http.base_url) as stranger:
        answer = await stranger.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"])
async def test_health_and_description_are_open(api: Api, path: str) -> None:
    async with httpx.AsyncClient(base_url=api.http.base_url) as stranger:
        assert (await stranger.get(path)).status_code == 200


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


async def test_what_is_no_json_or_too_large_is_refused(api: Api) -> None:
    await api.refused("POST", "/v1/jobs", 422, content=b"{", headers={"Content-Type": "application/json"})
    await api.refused("POST", "/v1/jobs", 413, content=b" " * (1024 * 1024 + 1))

    async def unannounced() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 65536

    await api.refused("POST", "/v1/jobs", 413, content=unannounced())


@pytest.mark.parametrize("path", ["", "/plan", "/logs", "/events"])
async def test_an_unknown_job_is_not_found(api: Api, path: str) -> None:
    problem = await api.refused("GET", f"/v1/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV{path}", 404)
    assert "01ARZ3NDEKTSV4RRFFQ69G5FAV" in problem["detail"]


async def test_a_job_that_does_not_run_cannot_be_paused(api: Api) -> None:
    view = await api.submit()
    problem = await api.refused("POST", f"/v1/jobs/{view['id']}/pause", 409)
    assert "queued" in problem["detail"]


async def sse(api: Api, path: str, count: int, **request: Any) -> list[tuple[str, str, dict[str, Any]]]:
    found = []
    async with aconnect_sse(api.http, "GET", path, **request) as source:
        async for event in source.aiter_sse():
            found.append((event.id, event.event, json.loads(event.data)))
            if len(found) == count:
                break
    return found


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


async def join(api: Api, token: str, node: str = "n1", **changes: Any) -> httpx.Response:
    body = {"token": token, "name": node, "public_key": new_user_key().public, "cpu": 2000, "memory": 2**30}
    async with httpx.AsyncClient(base_url=api.http.base_url) as stranger:
        return await stranger.post("/v1/nodes/join", json=body | changes)


async def test_a_token_admits_one_node_once(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={"node": "n1"})).json()["token"]
    assert (await join(api, token, "n2")).status_code == 403
    joined = await join(api, token)
    assert joined.status_code == 200
    assert joined.json()["subnet"] == "10.64.0.0/24"
    assert (await join(api, token)).status_code == 403
    assert (await join(api, "no-such-token")).status_code == 403
    nodes = (await api.http.get("/v1/nodes")).json()["items"]
    assert [(node["name"], node["state"]) for node in nodes] == [("n1", "unreachable")]


async def test_a_wrong_key_is_refused_and_the_token_stays_good(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    wrong = await join(api, token, public_key="U" + "A" * 55)
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["field"] == "public_key"
    assert (await join(api, token)).status_code == 200


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


async def test_cordon_and_uncordon(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    await join(api, token)
    assert (await api.http.post("/v1/nodes/n1/cordon")).json()["cordoned"] is True
    assert (await api.http.post("/v1/nodes/n1/uncordon")).json()["cordoned"] is False
    await api.refused("POST", "/v1/nodes/nobody/cordon", 404)


async def test_a_probe_asks_both_ends_and_keeps_what_they_found(api: Api) -> None:
    asked: list[tuple[str, LinkProbe]] = []

    async def answer(message: Message) -> bytes:
        query = LinkProbe.model_validate_json(message.data)
        asked.append((message.subject, query))
        rate = 100e6 if query.part == "send" else 60e6
        return LinkProbed(rate=rate, round_trip_s=0.002 if query.part == "send" else None).encode()

    for name in ("n1", "n2"):
        token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
        assert (await join(api, token, name, network="tc")).status_code == 200
        await api.bus.serve(subjects.agent_rpc(name, "probe"), answer)
    await api.http.put("/v1/topology", json={"links": [{"src": "n1", "dst": "n2", "bandwidth": "100Mbit"}]})
    await api.refused("POST", "/v1/links/n1/n2/probe", 409)
    for name in ("n1", "n2"):
        await api.bus.request(subjects.heartbeat(name), Heartbeat(node=name, boot="b").encode())
    found = (await api.http.post("/v1/links/n1/n2/probe", json={"seconds": 0.3})).json()
    assert (found["sent"], found["received"], found["measured"]) == (100e6, 60e6, 60_000_000)
    assert {(subject.split(".")[4], query.part, query.peer) for subject, query in asked} == {
        ("n1", "send", "n2"),
        ("n2", "receive", "n1"),
    }
    kept = (await api.http.get("/v1/links")).json()["items"]
    assert [(link["measured"], link["round_trip_s"]) for link in kept] == [(60_000_000, 0.002), (None, None)]
    await api.refused("POST", "/v1/links/n1/n3/probe", 404)
    await api.refused("POST", "/v1/links/n1/n2/probe", 422, json={"seconds": 60})


async def test_a_topology_is_put_whole_and_wrong_ones_name_the_field(api: Api) -> None:
    links = [{"src": "n1", "dst": "n2", "bandwidth": "100Mbit"}]
    view = (await api.http.put("/v1/topology", json={"links": links})).json()
    assert [(link["src"], link["dst"], link["bandwidth"]) for link in view["links"]] == [
        ("n1", "n2", 100_000_000),
        ("n2", "n1", 100_000_000),
    ]
    problem = await api.refused("PUT", "/v1/topology", 422, json={"links": links + links})
    assert problem["errors"][0]["field"].startswith("links")
    no_medium = [{**links[0], "medium": "air"}]
    problem = await api.refused("PUT", "/v1/topology", 422, json={"links": no_medium})
    assert "air" in problem["detail"]


async def test_a_dry_run_is_the_schedulers_answer_and_stores_nothing(api: Api) -> None:
    problem = await api.refused("POST", "/v1/plans", 503, json=JOB)
    assert "nobody answers" in problem["detail"]

    async def scheduler(_: object) -> bytes:
        return PlanAnswer(feasible=True, version=3, solver="greedy", assignments={"worker-0": "n1"}).encode()

    await api.bus.serve("ces.v1.rpc.scheduler.plan", scheduler)
    answer = (await api.http.post("/v1/plans", json=JOB)).json()
    assert answer["assignments"] == {"worker-0": "n1"}
    assert (await api.http.get("/v1/jobs")).json()["items"] == []


async def test_the_queue_is_in_the_order_in_which_jobs_are_tried(api: Api) -> None:
    for name, priority in (("low", 10), ("high", 90), ("middle", 50)):
        await api.submit(name=name, priority=priority)
    entries = (await api.http.get("/v1/queue")).json()["items"]
    assert [(entry["position"], entry["name"]) for entry in entries] == [(1, "high"), (2, "middle"), (3, "low")]


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


async def test_a_heartbeat_that_cannot_be_stored_spoils_no_other(api_on_either: Api) -> None:
    """Both are renewed in one transaction."""
    api = api_on_either
    for node in ("n1", "n2"):
        token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
        assert (await join(api, token, node)).status_code == 200
    beats = [Heartbeat(node="n1", boot="\0" + "x" * 1000), Heartbeat(node="n2", boot="b")]
    asked = [api.bus.request(f"ces.v1.hb.{beat.node}", beat.encode()) for beat in beats]
    for answer in await asyncio.gather(*asked):
        assert json.loads(answer)["lease_s"] == Policy().lease_s
    nodes = (await api.http.get("/v1/nodes")).json()["items"]
    assert [node["state"] for node in nodes] == ["ready", "ready"]


async def test_a_node_is_forgotten_and_its_name_joins_again_with_another_key(api_on_either: Api) -> None:
    api = api_on_either
    key, token = new_user_key().public, (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    assert (await join(api, token, public_key=key)).status_code == 200
    await api.bus.request("ces.v1.hb.n1", Heartbeat(node="n1", boot="b").encode())
    problem = await api.refused("POST", "/v1/nodes/n1/forget", 409)
    assert problem["detail"] == "node n1 is alive: drain it first (ces node drain n1), or end its agent"
    await api.http.post("/v1/nodes/n1/drain")
    api.claims.error = BusUnavailable("away")
    gone = (await api.http.post("/v1/nodes/n1/forget")).json()
    assert gone == {"node": "n1", "jobs": [], "credential": "pending"}
    assert (await api.http.get("/v1/nodes")).json()["items"] == []
    await api.refused("POST", "/v1/nodes/n1/forget", 404)
    with pytest.raises(RemoteError, match="no node n1 has joined"):
        await api.bus.request("ces.v1.hb.n1", Heartbeat(node="n1", boot="b").encode())
    token = (await api.http.post("/v1/nodes/tokens", json={"node": "n1"})).json()["token"]
    again = await join(api, token, public_key=key)
    assert again.status_code == 403
    assert "delete the agent's state folder" in again.json()["detail"]
    assert (await join(api, token)).status_code == 200, "the token stays good for another key"
    api.claims.error = None
    await api.http.post("/v1/nodes/n1/drain")
    assert (await api.http.post("/v1/nodes/n1/forget")).json()["credential"] == "revoked"
    assert key in api.claims.refused, "what could not be told before is told with the next"
    assert len(api.claims.refused) == 2
