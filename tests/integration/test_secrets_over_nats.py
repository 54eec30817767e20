"""Secrets on a real server: an agent is given those of its own task, sealed to its key, and no others."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from agent_parts import worker
from confinements import APART
from databases import KINDS, new_database
from manager_world import World
from marker_search import forms
from nats.aio.msg import Msg
from nats_identities import SOON, administrator
from nats_process import NatsServer
from rest_api import Api, join, running_api

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.port import AccessRefused
from ces_common.jobfile import JobFile
from ces_common.messages.confinement import ConfinementReport
from ces_common.messages.desired import DesiredWorker
from ces_common.messages.records import AllocationRecord
from ces_common.messages.reports import Heartbeat
from ces_common.messages.secrets import SecretsQuery, TaskSecrets
from ces_common.natsauth import Credentials, UserKey, init_trust, new_user_key, server_config
from ces_common.natsauth.keys import BadKey
from ces_common.natsauth.sealed_messages import unseal
from ces_edge_agent.ports import Refused
from ces_edge_agent.secrets import Secrets, SecretsAway

MARKER = b"a marker that nobody may find"
ENCODED = base64.b64encode(MARKER).decode()
ANSWER = TaskSecrets(files={"token": MARKER}).encode()
JOB = {"name": "needs", "tasks": [{"name": "w", "command": ["true"], "secrets": {"token": {"from": "hub"}}}]}


@dataclass
class Site:
    """A manager and two nodes on a broker, and all that was said there."""

    api: Api
    world: World
    keys: dict[str, UserKey] = field(default_factory=dict)
    buses: dict[str, NatsBus] = field(default_factory=dict)
    heard: list[bytes] = field(default_factory=list)

    async def enter(self, node: str, url: str) -> None:
        key = self.keys[node] = new_user_key()
        token = (await self.api.http.post("/v1/nodes/tokens", json={})).json()["token"]
        jwt = (await join(self.api, token, node, key)).json()["jwt"]
        bus = self.buses[node] = NatsBus(url, name=node, credentials=Credentials(jwt, key.seed))
        await bus.connect()
        await bus.request(subjects.heartbeat(node), Heartbeat(node=node, boot="b").encode())
        confined = ConfinementReport(node=node, confinement=APART)
        await bus.publish(subjects.report(node, "confinement"), confined.encode())

    def told(self) -> bool:
        """Whether the manager knows of all nodes how their workers are confined."""
        return all(node.confinement == APART for node in self.world.snapshot().nodes)

    def secrets(self, node: str) -> Secrets:
        return Secrets(self.buses[node], node, self.keys[node].seed)

    def starting(self) -> AllocationRecord:
        """The task of a job that is to start on n1."""
        job = self.world.submit(JobFile.model_validate(JOB))
        assert self.world.commit(self.world.propose(job, ["n1"])) is None
        self.world.network(job)
        [allocation] = self.world.job(job).allocations
        return allocation


def needing(allocation: AllocationRecord) -> DesiredWorker:
    return worker(allocation.id, secrets=["token"])


@pytest.fixture(params=KINDS)
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    trust, url = init_trust(tmp_path / "trust"), new_database(request.param, tmp_path)
    with NatsServer(tmp_path / "server", server_config(trust, store_dir=tmp_path / "store", port=-1)) as server:
        async with running_api(tmp_path, url, broker=server) as api:
            made = Site(api, World(url))
            listener = await administrator(server.url, trust)

            async def note(message: Msg) -> None:
                made.heard.append(message.data)

            await listener.subscribe(">", cb=note)
            await listener.flush()
            for node in ("n1", "n2"):
                await made.enter(node, server.url)
            async with asyncio.timeout(SOON):
                while not {"n1", "n2"} <= await api.ready() or not made.told():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            yield made
            await listener.close()
            for bus in made.buses.values():
                await bus.close()
            made.world.close()


async def test_an_agent_is_given_its_own_tasks_secrets_and_nobody_else(site: Site) -> None:
    assert (await site.api.http.put("/v1/secrets/hub", json={"value": ENCODED})).status_code == 200
    allocation = site.starting()
    assert await site.secrets("n1").of(needing(allocation)) == {"token": MARKER}
    with pytest.raises(SecretsAway, match="no task with these secrets is to start on node n2 now"):
        await site.secrets("n2").of(needing(allocation))
    query = SecretsQuery(allocation=allocation.id, incarnation=1).encode()
    with pytest.raises(AccessRefused):
        await site.buses["n2"].request(subjects.secrets("n1"), query)
    assert query in site.heard, "all that is said is heard"
    assert any(form in ANSWER for form in forms(MARKER)), "in the clear it would be found"
    assert not [each for each in site.heard if any(form in each for form in forms(MARKER))]
    assert [each for each in site.heard if opened(site.keys["n1"], each) == ANSWER], "it is among what was heard"
    assert not [each for each in site.heard if opened(site.keys["n2"], each) == ANSWER]


def opened(key: UserKey, data: bytes) -> bytes | None:
    """What was sealed to the key; None where nothing was."""
    try:
        return unseal(key.seed, data)
    except BadKey:
        return None


async def test_one_that_is_removed_refuses_the_start(site: Site) -> None:
    await site.api.http.put("/v1/secrets/hub", json={"value": ENCODED})
    allocation = site.starting()
    assert (await site.api.http.delete("/v1/secrets/hub")).status_code == 200
    with pytest.raises(Refused, match="no secret hub in tenant default: create it with"):
        await site.secrets("n1").of(needing(allocation))
