"""What each identity may do on a real server, and that everything else is refused for want of permission.

Each refusal stands beside the same action that is allowed (to the same identity under its own name, or to whom it is
meant for), so that no test passes because the action could not have worked at all.
"""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from ces_common import subjects
from ces_common.bus import AccessRefused, Bus, BusError, BusUnavailable, Delivery, Message, NatsBus, NoResponder
from ces_common.bus.nats_claims import AccountClaims
from ces_common.natsauth import (
    Credentials,
    Trust,
    init_trust,
    issue_user,
    load_revocation_key,
    load_signing_key,
    new_user_key,
    read_credentials,
    save_credentials,
    server_config,
)
from ces_common.natsauth.jwt import claims_of, revoking
from ces_common.natsauth.keys import BadKey, Kind, new_seed, public_key
from ces_common.natsserver import NatsServer
from ces_common.subjects import BadName

SOON = 10.0
KV = subjects.WANTED_STREAM


@dataclass
class Cluster:
    trust: Trust
    server: NatsServer


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("nats-trust")
    trust = init_trust(home / "trust")
    with NatsServer(home / "server", server_config(trust, store_dir=home / "store", port=-1)) as server:
        yield Cluster(trust, server)


Enter = Callable[..., Awaitable[NatsBus]]


@pytest.fixture
async def enter(cluster: Cluster) -> AsyncIterator[Enter]:
    """Connects as somebody."""
    made: list[NatsBus] = []

    async def connect(role: str, name: str | None = None) -> NatsBus:
        name = name or role
        bus = NatsBus(cluster.server.url, name=name, credentials=cluster.trust.new_credentials(role, name))
        made.append(bus)
        await bus.connect(deadline_s=SOON)
        return bus

    manager = await connect("manager")
    await manager.provision()
    yield connect
    for bus in made:
        await bus.close()


async def ask(bus: NatsBus, subject: str, body: object = "") -> bytes:
    """A request to the broker's own interface, as a client of any make could send it."""
    data = json.dumps(body).encode() if body != "" else b""
    return (await bus._link.request(subject, data, None, 2.0)).data


async def send_and_see(bus: NatsBus, subject: str, data: bytes = b"x", reply: str = "") -> bool:
    """Publish, and whether the broker let it through."""
    with bus._link.refusal("publish", subject) as refused:
        await bus._link.publish(subject, data, reply=reply)
        await bus._link.flush()
        return not refused.done()


async def nothing(message: Message) -> None:
    """A handler for what must not come, or does not matter."""


# An agent


async def test_an_agent_does_everything_it_has_to(enter: Enter) -> None:
    controller, manager, agent = await enter("compute-ctl"), await enter("manager"), await enter("agent", "n1")
    heard: asyncio.Queue[tuple[str, bytes | None]] = asyncio.Queue()
    reports: asyncio.Queue[Message] = asyncio.Queue()

    async def on_key(key: str, data: bytes | None) -> None:
        await heard.put((key, data))

    async def lease(message: Message) -> bytes:
        return b"lease for " + message.subject.encode()

    async def logs(message: Message) -> bytes:
        return b"log line\n" * 10_000

    await agent.kv_subscribe("n1", on_key)
    await agent.serve(subjects.agent_rpc("n1", "logs"), logs)
    await manager.subscribe(subjects.ALL_REPORTS, reports.put)
    await manager.serve(subjects.ALL_HEARTBEATS, lease)
    await controller.kv_put("n1.compute", b"wanted")

    assert await asyncio.wait_for(heard.get(), SOON) == ("n1.compute", b"wanted")
    assert await agent.kv_get("n1.compute") == b"wanted"
    assert await agent.kv_get("n1.network") is None
    assert await agent.request(subjects.heartbeat("n1"), b"beat") == b"lease for ces.v1.hb.n1"
    for kind in subjects.REPORT_KINDS:
        await agent.publish(subjects.report("n1", kind), b"x")
        assert (await asyncio.wait_for(reports.get(), SOON)).subject == subjects.report("n1", kind)
    assert await manager.request(subjects.agent_rpc("n1", "logs")) == b"log line\n" * 10_000


async def test_an_agent_reads_no_other_nodes_keys(enter: Enter) -> None:
    controller, agent = await enter("compute-ctl"), await enter("agent", "n1")
    await controller.kv_put("n1.compute", b"one")
    await controller.kv_put("n2.compute", b"two")
    assert await agent.kv_get("n1.compute") == b"one"
    with pytest.raises(AccessRefused):
        await agent.kv_get("n2.compute")

    async def on_key(key: str, data: bytes | None) -> None:
        raise AssertionError(f"heard {key}")

    with pytest.raises(AccessRefused):
        await agent.kv_subscribe("n2", on_key)
    for pattern in (f"{subjects.WANTED_PREFIX}.>", f"{subjects.WANTED_PREFIX}.*.compute", ">", "*.>", "$JS.>"):
        with pytest.raises(AccessRefused):
            await agent.subscribe(pattern, nothing)
    await agent.subscribe(subjects.wanted_subjects("n1"), nothing)


@pytest.mark.parametrize(
    "subject",
    [
        "ces.v1.hb.{}",
        "ces.v1.agent.{}.status",
        "ces.v1.agent.{}.applied",
    ],
)
async def test_an_agent_speaks_under_its_own_name_only(enter: Enter, subject: str) -> None:
    agent = await enter("agent", "n1")
    assert await send_and_see(agent, subject.format("n1")) is True
    assert await send_and_see(agent, subject.format("n2")) is False


@pytest.mark.parametrize(
    "subject",
    [
        subjects.event("job", "submitted", "j1"),
        subjects.event("plan", "proposed", "p1"),
        subjects.wanted_subject("n1.compute"),
        subjects.wanted_subject("n2.compute"),
        subjects.rpc("manager", "snapshot"),
        subjects.agent_rpc("n2", "logs"),
        subjects.agent_rpc("n1", "logs"),
        subjects.dead_letter("manager"),
        "_INBOX.manager.guess",
        "$SYS.REQ.SERVER.PING",
    ],
)
async def test_an_agent_publishes_nothing_else(enter: Enter, subject: str) -> None:
    agent = await enter("agent", "n1")
    assert await send_and_see(agent, subject) is False


@pytest.mark.parametrize(
    "subject",
    ["ces.v1.hb.*", "ces.v1.agent.>", "ces.v1.evt.>", "ces.v1.rpc.manager.>", "ces.v1.rpc.agent.n2.>", "_INBOX.>"],
)
async def test_an_agent_hears_nothing_else(enter: Enter, subject: str) -> None:
    agent = await enter("agent", "n1")
    with pytest.raises(AccessRefused):
        await agent.subscribe(subject, nothing)


CONSUMER = {"stream_name": KV, "config": {"durable_name": "spy", "name": "spy", "ack_policy": "explicit"}}
FORBIDDEN_API = {
    "$JS.API.INFO": "",
    "$JS.API.STREAM.NAMES": "",
    "$JS.API.STREAM.LIST": "",
    f"$JS.API.STREAM.INFO.{KV}": "",
    f"$JS.API.STREAM.DELETE.{KV}": "",
    f"$JS.API.STREAM.PURGE.{KV}": "",
    f"$JS.API.STREAM.CREATE.{KV}": {"name": KV},
    f"$JS.API.STREAM.UPDATE.{KV}": {"name": KV},
    "$JS.API.STREAM.CREATE.OWN": {"name": "OWN", "subjects": ["own.>"]},
    f"$JS.API.STREAM.MSG.GET.{KV}": {"last_by_subj": "$KV.ces_wanted.n1.compute"},
    f"$JS.API.STREAM.MSG.DELETE.{KV}": {"seq": 1},
    f"$JS.API.DIRECT.GET.{KV}": {"last_by_subj": "$KV.ces_wanted.n2.compute"},
    f"$JS.API.CONSUMER.CREATE.{KV}": CONSUMER,
    f"$JS.API.CONSUMER.CREATE.{KV}.spy": CONSUMER,
    f"$JS.API.CONSUMER.CREATE.{KV}.spy.$KV.ces_wanted.n1.compute": CONSUMER,
    f"$JS.API.CONSUMER.DURABLE.CREATE.{KV}.spy": CONSUMER,
    f"$JS.API.CONSUMER.LIST.{KV}": "",
    f"$JS.API.CONSUMER.MSG.NEXT.{subjects.EVENT_STREAM}.manager": "",
}


@pytest.mark.parametrize("subject", FORBIDDEN_API)
async def test_an_agent_has_no_other_way_into_the_store(enter: Enter, subject: str) -> None:
    controller, agent = await enter("compute-ctl"), await enter("agent", "n1")
    await controller.kv_put("n1.compute", b"one")
    own = f"$JS.API.DIRECT.GET.{KV}.{subjects.wanted_subject('n1.compute')}"
    assert await ask(agent, own) == b"one"
    with pytest.raises(AccessRefused):
        await ask(agent, subject, FORBIDDEN_API[subject])


async def test_the_store_answers_those_who_may_ask(enter: Enter) -> None:
    """The counterpart to the refusals above: the same requests do work."""
    manager, controller = await enter("manager"), await enter("compute-ctl")
    assert json.loads(await ask(manager, f"$JS.API.STREAM.INFO.{KV}"))["config"]["name"] == KV
    assert json.loads(await ask(controller, f"$JS.API.STREAM.INFO.{KV}"))["config"]["allow_direct"] is True


async def test_no_read_can_be_turned_into_a_write(enter: Enter) -> None:
    """The server sends what was read to any reply subject; whatever comes that way is not taken for real."""
    controller, manager = await enter("compute-ctl"), await enter("manager")
    attacker, victim = await enter("agent", "n1"), await enter("agent", "n2")
    await controller.kv_put("n1.compute", b"mine")
    heard: asyncio.Queue[bytes | None] = asyncio.Queue()
    beats: asyncio.Queue[Message] = asyncio.Queue()
    facts: asyncio.Queue[Delivery] = asyncio.Queue()
    served: asyncio.Queue[Message] = asyncio.Queue()

    async def on_key(key: str, data: bytes | None) -> None:
        await heard.put(data)

    async def serve(message: Message) -> bytes:
        await served.put(message)
        return b""

    await victim.kv_subscribe("n2", on_key)
    await victim.serve(subjects.agent_rpc("n2", "stop"), serve)
    await manager.subscribe(subjects.ALL_HEARTBEATS, beats.put)
    await manager.consume("manager", [subjects.ALL_EVENTS], facts.put)
    own = f"$JS.API.DIRECT.GET.{KV}.{subjects.wanted_subject('n1.compute')}"
    for reply in (
        subjects.wanted_subject("n2.compute"),
        subjects.heartbeat("n2"),
        subjects.event("plan", "proposed", "p"),
        subjects.agent_rpc("n2", "stop"),
    ):
        assert await send_and_see(attacker, own, b"", reply=reply) is True

    # what is real comes after, and only that
    assert await send_and_see(victim, subjects.heartbeat("n2"), b"real") is True
    assert (await asyncio.wait_for(beats.get(), SOON)).data == b"real"
    await manager.publish_fact(subjects.event("job", "submitted", "j"), b"real", message_id="real")
    assert (await asyncio.wait_for(facts.get(), SOON)).data == b"real"
    assert await controller.kv_get("n2.compute") is None
    await controller.kv_put("n2.compute", b"real")
    assert await asyncio.wait_for(heard.get(), SOON) == b"real"
    assert await victim.kv_get("n2.compute") == b"real"
    assert served.empty()


async def test_no_answer_can_be_turned_into_a_write(enter: Enter) -> None:
    """An agent names the reply subject of its heartbeat; the manager answers to inboxes only."""
    manager, agent = await enter("manager"), await enter("agent", "n1")
    answered: asyncio.Queue[Message] = asyncio.Queue()
    heard: asyncio.Queue[Message] = asyncio.Queue()

    async def lease(message: Message) -> bytes:
        await answered.put(message)
        return b"lease"

    await manager.serve(subjects.ALL_HEARTBEATS, lease)
    await manager.subscribe(subjects.ALL_REPORTS, heard.put)
    assert await send_and_see(agent, subjects.heartbeat("n1"), reply=subjects.report("n2", "status")) is True
    assert await agent.request(subjects.heartbeat("n1"), b"beat") == b"lease"
    assert (await answered.get()).data == b"beat"
    assert heard.empty()
    assert answered.empty()


# The services


async def test_a_controller_finds_its_own_documents_beside_the_others(enter: Enter) -> None:
    compute, network = await enter("compute-ctl"), await enter("network-ctl")
    for bus, kind in ((compute, "compute"), (network, "network")):
        for node in ("n1", "n2"):
            await bus.kv_put(f"{node}.{kind}", b"wanted")
        await bus.kv_delete(f"n2.{kind}")
        assert f"n1.{kind}" in await bus.kv_keys(kind)
        assert f"n2.{kind}" not in await bus.kv_keys(kind)
    with pytest.raises(AccessRefused):
        await compute.kv_keys("network")


async def test_only_controllers_write_wanted_state_each_its_own_kind(enter: Enter) -> None:
    compute, network = await enter("compute-ctl"), await enter("network-ctl")
    scheduler = await enter("scheduler")
    await compute.kv_put("n1.compute", b"c")
    await network.kv_put("n1.network", b"n")
    with pytest.raises(AccessRefused):
        await compute.kv_put("n1.network", b"x")
    with pytest.raises(AccessRefused):
        await network.kv_put("n1.compute", b"x")
    with pytest.raises(AccessRefused):
        await scheduler.kv_put("n1.compute", b"x")
    with pytest.raises(AccessRefused):
        await scheduler.kv_delete("n1.compute")
    assert await compute.kv_get("n1.compute") == b"c"
    assert await network.kv_get("n1.network") == b"n"


FACTS = {
    "scheduler": [subjects.event("plan", "proposed", "p"), subjects.event("plan", "refused", "p")],
    "network-ctl": [subjects.event("network", "ready", "j")],
    "compute-ctl": [],
    "manager": [subjects.event("plan", "committed", "p"), subjects.event("job", "submitted", "j")],
}


@pytest.mark.parametrize("role", FACTS)
async def test_each_service_states_its_own_facts_only(enter: Enter, role: str) -> None:
    service = await enter(role)
    for subject in FACTS[role]:
        await service.publish_fact(subject, b"{}", message_id=f"{role} {subject}")
    if role != "manager":
        for subject in {each for facts in FACTS.values() for each in facts} - set(FACTS[role]):
            with pytest.raises(AccessRefused):
                await service.publish_fact(subject, b"{}", message_id=f"{role} {subject}")


@pytest.mark.parametrize("role", ["manager", "scheduler", "compute-ctl", "network-ctl"])
async def test_each_service_consumes_under_its_own_name_only(enter: Enter, role: str) -> None:
    manager, service = await enter("manager"), await enter(role)
    facts: asyncio.Queue[Delivery] = asyncio.Queue()
    dead: asyncio.Queue[Delivery] = asyncio.Queue()
    await manager.publish_fact(subjects.event("job", "cancelled", role), b"{}", message_id=f"to {role}")

    async def fail(delivery: Delivery) -> None:
        await facts.put(delivery)
        raise RuntimeError("to see a dead letter")

    await service.consume(role, [subjects.events("job", "cancelled")], fail, max_deliver=1)
    while (await asyncio.wait_for(facts.get(), SOON)).message_id != f"to {role}":
        pass
    await manager.consume("manager", [subjects.dead_letter(role)], dead.put)
    while (await asyncio.wait_for(dead.get(), SOON)).message_id != f"{role}.to {role}":
        pass
    with pytest.raises(AccessRefused):
        await service.consume("another", [subjects.ALL_EVENTS], fail)
    other = "scheduler" if role != "scheduler" else "manager"
    with pytest.raises(AccessRefused):
        await service.consume(other, [subjects.ALL_EVENTS], fail)


@pytest.mark.parametrize("role", ["scheduler", "compute-ctl", "network-ctl"])
async def test_only_the_manager_makes_streams_and_nobody_deletes_them(enter: Enter, role: str) -> None:
    manager, service = await enter("manager"), await enter(role)
    await manager.provision()
    with pytest.raises(AccessRefused):
        await service.provision()
    for bus in (manager, service):
        for verb in ("DELETE", "PURGE"):
            with pytest.raises(AccessRefused):
                await ask(bus, f"$JS.API.STREAM.{verb}.{subjects.EVENT_STREAM}")


async def test_services_ask_and_answer_each_other(enter: Enter) -> None:
    manager, scheduler = await enter("manager"), await enter("scheduler")

    async def echo(message: Message) -> bytes:
        return message.data

    await manager.serve(subjects.rpc("manager", "snapshot"), echo, queue="manager")
    await scheduler.serve(subjects.rpc("scheduler", "plan"), echo, queue="scheduler")
    assert await scheduler.request(subjects.rpc("manager", "snapshot"), b"v1") == b"v1"
    assert await manager.request(subjects.rpc("scheduler", "plan"), b"job") == b"job"
    with pytest.raises(AccessRefused):
        await scheduler.serve(subjects.rpc("manager", "snapshot"), echo)
    with pytest.raises(AccessRefused):
        await scheduler.request(subjects.agent_rpc("n1", "logs"))


# Who gets in at all


async def refused(cluster: Cluster, credentials: Credentials | None, name: str = "n1") -> None:
    bus = NatsBus(cluster.server.url, name=name, credentials=credentials)
    with pytest.raises(AccessRefused):
        await bus.connect(deadline_s=SOON)
    assert not bus.connected
    await bus.close()


async def test_nobody_gets_in_without_credentials(cluster: Cluster) -> None:
    await refused(cluster, None)


async def test_a_jwt_needs_its_own_seed(cluster: Cluster) -> None:
    good = cluster.trust.new_credentials("agent", "n1")
    await refused(cluster, Credentials(jwt=good.jwt, seed=new_user_key().seed))


async def test_a_tampered_jwt_is_refused(cluster: Cluster) -> None:
    good = cluster.trust.new_credentials("agent", "n1")
    other = cluster.trust.new_credentials("agent", "n2")
    (header, _, signature), (_, body, _) = good.jwt.split("."), other.jwt.split(".")
    await refused(cluster, Credentials(jwt=f"{header}.{body}.{signature}", seed=other.seed), "n2")


async def test_a_jwt_of_a_foreign_cluster_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    foreign = init_trust(tmp_path / "foreign")
    await refused(cluster, foreign.new_credentials("agent", "n1"))
    key = new_user_key()
    forged = load_signing_key(foreign.signing_key_file("agent"))
    claimed = type(forged)(role="agent", account=cluster.trust.account, seed=forged.seed)
    await refused(cluster, Credentials(jwt=issue_user(claimed, "n1", key.public), seed=key.seed))


async def test_the_agents_signing_key_makes_agents_only(cluster: Cluster, enter: Enter) -> None:
    """Even when its holder calls the user by a service's name."""
    fake = await enter("agent", "manager")
    assert await send_and_see(fake, subjects.heartbeat("manager")) is True
    assert await send_and_see(fake, subjects.event("job", "submitted", "j")) is False
    with pytest.raises(AccessRefused):
        await fake.subscribe(subjects.rpc("manager", "snapshot"), nothing)


async def test_a_node_joins_with_a_key_that_never_leaves_it(cluster: Cluster, tmp_path: Path) -> None:
    node_key = new_user_key()  # on the node
    signing_key = load_signing_key(cluster.trust.signing_key_file("agent"))  # all that the manager has
    jwt = issue_user(signing_key, "edge-7", node_key.public)
    assert node_key.seed not in jwt
    file = tmp_path / "edge-7.creds"
    save_credentials(file, Credentials(jwt=jwt, seed=node_key.seed))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    bus: Bus = NatsBus(cluster.server.url, name="edge-7", credentials=read_credentials(file))
    await bus.connect(deadline_s=SOON)
    assert bus.connected
    await bus.close()


@pytest.mark.parametrize("name", ["*", ">", "a.b", "", "{{name()}}", "a b"])
def test_no_user_is_issued_for_a_name_that_is_more_than_a_name(cluster: Cluster, name: str) -> None:
    with pytest.raises(BadName):
        issue_user(cluster.trust.signing_key("agent"), name, new_user_key().public)


def test_no_user_is_issued_for_what_is_no_users_key(cluster: Cluster) -> None:
    good = new_user_key().public
    account = public_key(new_seed(Kind.ACCOUNT))
    damaged = good[:-1] + ("A" if good[-1] != "A" else "B")
    for bad in ("", "nonsense", account, new_user_key().seed, good[:-8], damaged):
        with pytest.raises(BadKey):
            issue_user(cluster.trust.signing_key("agent"), "n1", bad)


def test_secrets_are_for_their_owner_only_and_shown_to_nobody(cluster: Cluster) -> None:
    files = list(cluster.trust.directory.iterdir())
    assert len(files) == 10
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(cluster.trust.directory.stat().st_mode) == 0o700
    shown = server_config(cluster.trust, store_dir="/store")
    for role in ("agent", "manager"):
        key, credentials = cluster.trust.signing_key(role), cluster.trust.new_credentials(role, "x")
        assert key.seed not in repr(key)
        assert credentials.seed not in repr(credentials)
        assert key.seed not in shown
    revocation = load_revocation_key(cluster.trust.revocation_key_file)
    assert revocation.signing_seed not in repr(revocation) + shown
    assert revocation.credentials.seed not in repr(revocation) + shown


async def test_making_the_trust_again_keeps_every_credential_valid(cluster: Cluster, tmp_path: Path) -> None:
    first = init_trust(tmp_path / "trust")
    credentials = first.new_credentials("agent", "n1")
    again = init_trust(tmp_path / "trust")
    assert (again.account, again.system_account) == (first.account, first.system_account)
    with NatsServer(tmp_path / "server", server_config(again, store_dir=tmp_path / "store", port=-1)) as server:
        bus = NatsBus(server.url, name="n1", credentials=credentials)
        await bus.connect(deadline_s=SOON)
        with pytest.raises(BusUnavailable):  # nothing is provisioned, but it is let in
            await bus.kv_get("n1.compute")
        await bus.close()


async def test_a_service_that_starts_before_the_manager_waits_for_the_streams(cluster: Cluster, tmp_path: Path) -> None:
    facts: asyncio.Queue[Delivery] = asyncio.Queue()
    config = server_config(cluster.trust, store_dir=tmp_path / "store", port=-1)
    with NatsServer(tmp_path / "server", config) as server:
        scheduler, manager = (
            NatsBus(server.url, name=role, credentials=cluster.trust.new_credentials(role, role))
            for role in ("scheduler", "manager")
        )
        await scheduler.connect(deadline_s=SOON)
        await scheduler.consume("scheduler", [subjects.events("job")], facts.put)
        with pytest.raises(BusUnavailable):
            await scheduler.publish_fact(subjects.event("plan", "proposed", "p"), b"", message_id="p")
        await manager.connect(deadline_s=SOON)
        await manager.provision()
        await manager.publish_fact(subjects.event("job", "submitted", "j"), b"", message_id="j")
        assert (await asyncio.wait_for(facts.get(), SOON)).message_id == "j"
        await scheduler.close()
        await manager.close()


def user_key(credentials: Credentials) -> str:
    return str(claims_of(credentials.jwt)["sub"])


async def test_a_revoked_user_is_thrown_out_and_stays_out(tmp_path: Path) -> None:
    trust = init_trust(tmp_path / "trust")
    claims_key = load_revocation_key(trust.revocation_key_file)
    config = server_config(trust, store_dir=tmp_path / "store", port=-1)
    gone, stays = (trust.new_credentials("agent", name) for name in ("n1", "n2"))
    with NatsServer(tmp_path / "server", config) as server:
        for credentials, name in ((gone, "n1"), (stays, "n2")):
            await admitted(server, credentials, name)
        connected = NatsBus(server.url, name="n1", credentials=gone)
        await connected.connect(deadline_s=SOON)
        claims = AccountClaims([server.url], claims_key)
        assert await claims.revoke([user_key(gone)]) is True
        await until_thrown_out(connected)
        await connected.close()
        assert await claims.revoke([user_key(gone)]) is False, "the servers know it"
        server.stop()
        server.start()  # with the configuration that knows nothing of it
        with pytest.raises(AccessRefused):
            await admitted(server, gone, "n1")
        await admitted(server, stays, "n2")
        await admitted(server, trust.new_credentials("agent", "n1"), "n1")  # the name is not what was refused
        others = [user_key(trust.new_credentials("agent", "n3")) for _ in range(500)]
        assert await claims.revoke(others) is True, "the list outgrows what other messages are compressed for"
        with pytest.raises(AccessRefused):
            await admitted(server, gone, "n1")
    again = init_trust(tmp_path / "trust")
    assert again.account_jwt == trust.account_jwt, "a new one would be newer than the one with the revocations"
    with NatsServer(tmp_path / "server", server_config(again, store_dir=tmp_path / "store", port=-1)) as server:
        with pytest.raises(AccessRefused):
            await admitted(server, gone, "n1")
        await admitted(server, stays, "n2")


async def until_thrown_out(bus: NatsBus) -> None:
    async with asyncio.timeout(SOON):
        with suppress(BusUnavailable):
            while True:
                with suppress(NoResponder):
                    await bus.request(subjects.heartbeat("n1"))


async def admitted(server: NatsServer, credentials: Credentials, name: str) -> None:
    bus = NatsBus(server.url, name=name, credentials=credentials)
    await bus.connect(deadline_s=SOON)
    await bus.close()


async def test_who_may_revoke_may_do_nothing_else(cluster: Cluster) -> None:
    key = load_revocation_key(cluster.trust.revocation_key_file)
    bus = NatsBus(cluster.server.url, name="revoker", credentials=key.credentials)
    await bus.connect(deadline_s=SOON)
    account = f"$SYS.REQ.ACCOUNT.{cluster.trust.account}"
    assert claims_of((await bus.request(f"{account}.CLAIMS.LOOKUP")).decode())["sub"] == cluster.trust.account
    for subject in (
        f"$SYS.REQ.ACCOUNT.{cluster.trust.system_account}.CLAIMS.UPDATE",
        "$SYS.REQ.CLAIMS.UPDATE",
        "$SYS.REQ.CLAIMS.DELETE",
        f"{account}.CONNZ",
        "$SYS.REQ.SERVER.PING",
    ):
        with pytest.raises(AccessRefused):
            await bus.request(subject)
    for subject in ("$SYS.ACCOUNT.>", "$SYS.>"):
        with pytest.raises(AccessRefused):
            await bus.subscribe(subject, nothing)
    await bus.close()


async def test_a_key_that_the_server_does_not_trust_spoils_nothing(cluster: Cluster) -> None:
    key = load_revocation_key(cluster.trust.revocation_key_file)
    other = type(key)(account=key.account, signing_seed=new_seed(Kind.OPERATOR), credentials=key.credentials)
    with pytest.raises(BusError, match="another key signed it"):
        await AccountClaims([cluster.server.url], other).revoke([new_user_key().public])
    bystander = cluster.trust.new_credentials("agent", "n1")
    await admitted(cluster.server, bystander, "n1")


def test_revoking_makes_the_account_newer_whatever_the_clock_says(cluster: Cluster) -> None:
    key = load_revocation_key(cluster.trust.revocation_key_file)
    first = revoking(cluster.trust.account_jwt, key.signing_seed, ["U1"])
    assert first is not None
    second = revoking(first, key.signing_seed, ["U2"])
    assert second is not None
    issued = [claims_of(token)["iat"] for token in (cluster.trust.account_jwt, first, second)]
    assert issued == sorted(set(issued))
    assert set(claims_of(second)["nats"]["revocations"]) == {"U1", "U2"}
    assert claims_of(second)["nats"]["signing_keys"] == claims_of(cluster.trust.account_jwt)["nats"]["signing_keys"]
    assert revoking(second, key.signing_seed, ["U1"]) is None
    with pytest.raises(ValueError, match="not a JWT"):
        revoking("nonsense", key.signing_seed, ["U1"])
