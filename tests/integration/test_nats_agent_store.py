"""With an agent's credential nothing of JetStream can be reached on a real server: neither by its subjects, nor by
having somebody who may do more send an answer to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from manager_world import World, sqlite_url
from nats_identities import KV, SOON, administrator, send_and_see
from nats_process import NatsServer

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.messages.reports import Heartbeat, LeaseGrant
from ces_common.natsauth import Trust, init_trust, server_config
from ces_common.natsauth.permissions import AGENT, PERMISSIONS
from ces_manager.broadcast import Broadcast
from ces_manager.database import Database
from ces_manager.measurements import Measurements
from ces_manager.messaging.handlers import Messaging

ME, OTHER = "n1", "n2"
STORES = (subjects.EVENT_STREAM, subjects.DEAD_STREAM, KV)
# Every subject that a JetStream server of version 2.15 answers or acts on; {s} stands for a stream, {c} for a consumer.
JETSTREAM = (
    "$JS.API.INFO",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.LIST",
    *(
        f"$JS.API.STREAM.{verb}.{{s}}"
        for verb in ("CREATE", "UPDATE", "INFO", "DELETE", "PURGE", "SNAPSHOT", "RESTORE")
    ),
    *(f"$JS.API.STREAM.{verb}.{{s}}" for verb in ("MSG.GET", "MSG.DELETE", "LEADER.STEPDOWN")),
    *(f"$JS.API.STREAM.{verb}.{{s}}" for verb in ("PEER.REMOVE", "PEER.EVACUATE", "CANCEL_MOVE", "CANCEL.MOVE")),
    *(f"$JS.API.CONSUMER.{verb}.{{s}}" for verb in ("CREATE", "NAMES", "LIST")),
    *(f"$JS.API.CONSUMER.{verb}.{{s}}.{{c}}" for verb in ("CREATE", "DURABLE.CREATE", "INFO", "DELETE", "PAUSE")),
    *(f"$JS.API.CONSUMER.{verb}.{{s}}.{{c}}" for verb in ("RESET", "UNPIN", "LEADER.STEPDOWN", "MSG.NEXT")),
    *(f"$JS.API.CONSUMER.{verb}.{{s}}.{{c}}" for verb in ("PEER.REMOVE", "PEER.EVACUATE")),
    "$JS.API.CONSUMER.CREATE.{s}.{c}.ces.v1.evt.>",
    "$JS.API.DIRECT.GET.{s}",
    "$JS.API.DIRECT.GET.{s}.$KV.ces_desired.n1.compute",
    "$JS.API.DIRECT.GET.{s}.$KV.ces_desired.n2.compute",
    "$JS.API.ACCOUNT.PURGE.CES",
    "$JS.API.ACCOUNT.STREAM.MOVE.CES.{s}",
    "$JS.API.ACCOUNT.STREAM.CANCEL_MOVE.CES.{s}",
    "$JS.API.META.LEADER.STEPDOWN",
    "$JS.API.META.RESCUE",
    "$JS.API.SERVER.REMOVE",
    "$JS.API.SERVER.EVACUATE",
    "$JS.ACK.{s}.{c}.1.1.1.1700000000000000000.0",
    "$JS.ACK._.CES.{s}.{c}.1.1.1.1700000000000000000.0.x",
    "$JS.FC.{s}.{c}.x",
    "$JS.SNAPSHOT.ACK.{s}.x",
    "$JS.SNAPSHOT.RESTORE.{s}.x",
    "$JSC.R.x",
)
STORED = (  # what is stored, wherever it comes from
    *(subjects.desired_subject(f"{node}.{kind}") for node in (ME, OTHER) for kind in subjects.DESIRED_KINDS),
    f"{subjects.DESIRED_PREFIX}.{ME}.nothing",
    subjects.event("plan", "proposed", "p"),
    subjects.dead_letter("manager"),
)
FORBIDDEN = (*dict.fromkeys(each.format(s=s, c="manager") for each in JETSTREAM for s in STORES), *STORED)


def may_publish() -> list[str]:
    """Subjects that an agent may publish on: at least two for each of its rights."""
    found = []
    for pattern in PERMISSIONS[AGENT].publish:
        subject = pattern.replace("{{name()}}", ME)
        if subject.endswith((".>", ".*")):
            ends = ("nothing", *subjects.DESIRED_KINDS, *subjects.REPORT_KINDS)
            found += [f"{subject[:-1]}{end}" for end in ends]
        else:
            found.append(subject)
    return found


class Store:
    """A broker with everything that CES keeps there, the manager's own subscriptions, and somebody who sees it all."""

    def __init__(self, url: str, trust: Trust) -> None:
        self._url, self._trust = url, trust
        self._buses: list[NatsBus] = []

    async def enter(self, role: str, name: str | None = None) -> NatsBus:
        name = name or role
        bus = NatsBus(self._url, name=name, credentials=self._trust.new_credentials(role, name))
        self._buses.append(bus)
        await bus.connect(deadline_s=SOON)
        return bus

    async def open(self, messaging: Messaging, manager: NatsBus) -> None:
        """Some of everything is stored, and one fact is delivered that was not answered."""
        await manager.provision()
        await messaging.start()
        compute = await self.enter("compute-ctl")
        for number in range(3):
            event = subjects.event("job", "submitted", f"j{number}")
            await manager.publish_fact(event, b"fact", message_id=event)
        for node in (ME, OTHER):
            await compute.kv_put(f"{node}.compute", b"desired of " + node.encode())
        self._admin = await administrator(self._url, self._trust)
        self.js = self._admin.jetstream()
        reader = await self.js.pull_subscribe(subjects.events("job"), "reader", stream=subjects.EVENT_STREAM)
        await reader.fetch(1, timeout=SOON)

    async def close(self) -> None:
        await self._admin.close()
        for bus in self._buses:
            await bus.close()

    async def looks(self) -> dict[str, Any]:
        """Every stream, message and consumer there is."""
        found: dict[str, Any] = {}
        for stream in await self.js.streams_info():
            assert stream.config.name
            state, first = stream.state, max(1, stream.state.first_seq)
            messages = [await self._message(stream.config.name, n) for n in range(first, state.last_seq + 1)]
            found[stream.config.name] = (asdict(stream.config), first, state.last_seq, messages)
            for consumer in await self.js.consumers_info(stream.config.name):
                found[f"{consumer.stream_name} {consumer.name}"] = (
                    asdict(consumer.config),
                    consumer.delivered,
                    consumer.ack_floor,
                    consumer.num_ack_pending,
                    consumer.num_pending,
                    consumer.num_redelivered,
                )
        return found

    async def _message(self, stream: str, sequence: int) -> tuple[str | None, bytes | None]:
        message = await self.js.get_msg(stream, sequence)
        return message.subject, message.data


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    trust, world = init_trust(tmp_path / "trust"), World(sqlite_url(tmp_path))
    world.add_nodes(ME, OTHER)
    database = Database(world.uow)
    with NatsServer(tmp_path / "server", server_config(trust, store_dir=tmp_path / "store", port=-1)) as server:
        store = Store(server.url, trust)
        manager = await store.enter("manager")
        await store.open(
            Messaging(database, manager, world.timeouts, world.failure_detector, Measurements(), Broadcast()), manager
        )
        yield store
        await store.close()
    database.close()
    world.close()


async def test_no_read_is_executed_as_a_command(store: Store) -> None:
    before, agent = await store.looks(), await store.enter(AGENT, ME)
    nothing = f"$JS.API.DIRECT.GET.{KV}.{subjects.DESIRED_PREFIX}.{ME}.nothing"
    for verb in ("PURGE", "DELETE"):
        await send_and_see(agent, nothing, b"", reply=f"$JS.API.STREAM.{verb}.{subjects.EVENT_STREAM}")
    assert await store.looks() == before


async def test_nothing_of_jetstream_can_be_asked_for(store: Store) -> None:
    before, agent = await store.looks(), await store.enter(AGENT, ME)
    let_through = [subject for subject in FORBIDDEN if await send_and_see(agent, subject, b"")]
    assert let_through == []
    assert await store.looks() == before


@pytest.mark.parametrize("by", ["reply", "trace"])
async def test_nothing_of_jetstream_can_be_reached_by_the_answer_to_something_else(store: Store, by: str) -> None:
    """``trace``: the header that has a server tell a subject which way a message took."""
    before, agent = await store.looks(), await store.enter(AGENT, ME)
    beat = Heartbeat(node=ME, boot="b").encode()
    assert subjects.heartbeat(ME) in may_publish()
    for subject in may_publish():
        data = beat if subject == subjects.heartbeat(ME) else b""
        for target in FORBIDDEN:
            if by == "reply":
                await agent._connection.publish(subject, data, reply=target)
            else:
                await agent._connection.publish(subject, data, {"Nats-Trace-Dest": target})
        grant = await agent.request(subjects.heartbeat(ME), beat)  # who reads these messages is through with them
        assert LeaseGrant.model_validate_json(grant).lease_s > 0
    assert await store.looks() == before
