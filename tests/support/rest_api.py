"""The REST API over a real socket, for tests: with a database, an in-memory bus, and a client that has the token."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from memory_bus import MemoryBroker, MemoryBus
from nats_process import NatsServer
from sqlalchemy.engine import URL

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.nats_claims import AccountClaims
from ces_common.bus.port import Bus, BusError
from ces_common.db import UnitOfWork, migrate, new_engine
from ces_common.health import serve_http
from ces_common.messages.reports import Heartbeat
from ces_common.natsauth import (
    SIGNATURE,
    UserKey,
    init_trust,
    load_revocation_key,
    load_signing_key,
    new_user_key,
    signature_of,
)
from ces_common.natsauth.secret_files import new_key
from ces_common.natsauth.signed_requests import Purpose
from ces_common.queuefile import QueueFile
from ces_common.service import run_loops
from ces_manager.access.identities import Identities
from ces_manager.access.provider import Provider
from ces_manager.api.app import make_app
from ces_manager.api.context import Context
from ces_manager.broadcast import Broadcast
from ces_manager.database import Database
from ces_manager.duties import PROBE, Duties
from ces_manager.job_secrets.keys import parse_keys
from ces_manager.measurements import Measurements
from ces_manager.messaging.handlers import Messaging
from ces_manager.messaging.relay import Relay
from ces_manager.messaging.renewals import serve_renewals
from ces_manager.messaging.secret_requests import serve_secrets
from ces_manager.network.prober import Prober
from ces_manager.nodes.credentials import Issuer
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.nodes.revocation import Revoker
from ces_manager.queue.live import LiveQueue
from ces_manager.replay.keyframes import Kept, keep_if_due
from ces_manager.timeouts import Timeouts

PATIENCE_S = 60.0
TOKEN = "a-token-for-tests-only"
SECRET_KEYS = parse_keys(new_key())
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
    """``stopping``: once it is set, streams end with what there is. ``keep_history``: keeps a keyframe if one is
    due."""

    http: httpx.AsyncClient
    bus: Bus
    claims: FakeClaims
    stopping: asyncio.Event
    keep_history: Callable[[], Awaitable[Kept | None]]
    database: Database

    async def submit(self, **changes: Any) -> dict[str, Any]:
        answer = await self.http.post("/v1/jobs", json={**JOB, **changes})
        assert answer.status_code == 201, answer.text
        view: dict[str, Any] = answer.json()
        return view

    async def heard(self, *nodes: str) -> None:
        """The agents of these nodes beat, and each counts as ready."""
        for node in nodes:
            await self.bus.request(subjects.heartbeat(node), Heartbeat(node=node, boot="b").encode())
        async with asyncio.timeout(PATIENCE_S):
            while not set(nodes) <= await self.ready():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def ready(self) -> set[str]:
        """The nodes that count as ready."""
        found = (await self.http.get("/v1/nodes")).json()["items"]
        return {node["name"] for node in found if node["state"] == "ready"}

    async def refused(self, method: str, path: str, status: int, **request: Any) -> dict[str, Any]:
        answer = await self.http.request(method, path, **request)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        problem: dict[str, Any] = answer.json()
        assert problem["status"] == status
        assert problem["title"]
        return problem


@asynccontextmanager
async def running_api(
    folder: Path,
    url: URL,
    queue: QueueFile | None = None,
    *,
    broker: NatsServer | None = None,
    life_s: float = 86400.0,
    provider: Provider | None = None,
    region: str | None = None,
    max_applicants: int = 8,
    ui: bool = True,
) -> AsyncIterator[Api]:
    """``broker``: one that trusts what lies in ``folder``; else all is in memory. ``life_s``: of credentials. ``ui``:
    with the dashboard."""
    await asyncio.to_thread(migrate, url)
    uow = UnitOfWork(new_engine(url))
    trust = init_trust(folder / "trust")
    bus: Bus = MemoryBus(MemoryBroker())
    claims, telling = FakeClaims(), None
    if broker is not None:
        bus = NatsBus(broker.url, name="manager", credentials=trust.new_credentials("manager", "manager"))
        telling = AccountClaims([broker.url], load_revocation_key(trust.revocation_key_file))
    await bus.connect()
    await bus.provision()
    database, broadcast, timeouts, measurements = Database(uow), Broadcast(), Timeouts(), Measurements()
    failure_detector = FailureDetector(database.clock.steady)
    relay, duties = Relay(uow, bus), Duties(database, "here")
    database.on_commit(relay.hint.set)
    database.on_commit(broadcast.wake)
    context = Context(
        database=database,
        bus=bus,
        timeouts=timeouts,
        measurements=measurements,
        failure_detector=failure_detector,
        revoker=Revoker(database, telling or claims),
        prober=Prober(database, bus, lambda: duties.turn(PROBE)),
        broadcast=broadcast,
        queue=queue or QueueFile(),
        live_queue=LiveQueue(bus, database.clock.steady),
        identities=Identities(database, TOKEN, provider),
        secret_keys=SECRET_KEYS,
        issuer=Issuer(load_signing_key(trust.signing_key_file("agent")), life_s),
        agents_nats_urls=["nats://127.0.0.1:4222"] if broker is None else [broker.url],
        region=region,
        max_applicants=max_applicants,
    )
    await serve_renewals(bus, database, context.issuer, "manager")
    await serve_secrets(bus, database, SECRET_KEYS, "manager")
    await Messaging(database, bus, timeouts, FailureDetector(database.clock.steady), measurements, broadcast).start()
    stop = asyncio.Event()
    loops = asyncio.create_task(run_loops(stop, relay.run()))
    async with serve_http(make_app(context, lambda: None, ui=ui), "127.0.0.1", 0) as port:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=20) as http:
            yield Api(http, bus, claims, context.stopping, lambda: keep_if_due(database), database)
        context.stop()
    stop.set()
    await loops
    await bus.close()
    database.close()
    uow.engine.dispose()


async def join(api: Api, token: str, node: str = "n1", key: UserKey | None = None, **changes: Any) -> httpx.Response:
    key = key or new_user_key()
    body = {"token": token, "name": node, "public_key": key.public, "cpu": 2000, "memory": 2**30} | changes
    return await say(api, *signed("join", body, key))


def signed(purpose: Purpose, body: dict[str, Any], key: UserKey) -> tuple[str, bytes, dict[str, str]]:
    """A request as an agent sends it: the route, the body, and the headers."""
    data = json.dumps(body).encode()
    headers = {"Content-Type": "application/json", SIGNATURE: signature_of(key.seed, purpose, data)}
    return f"/v1/nodes/{purpose}", data, headers


async def say(api: Api, route: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
    """Send it, without the administrator's token."""
    async with httpx.AsyncClient(base_url=api.http.base_url) as stranger:
        return await stranger.post(route, content=body, headers=headers)
