"""What each service may do on a real server, and that everything else is refused for want of permission.

Each refusal stands beside the same action that is allowed, so that no test passes because the action could not have
worked at all.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from nats_identities import SOON, Cluster, Enter, ask, nothing
from nats_process import NatsServer

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.port import AccessRefused, BusUnavailable, Delivery, Message
from ces_common.messages.reports import Alive
from ces_common.natsauth import server_config
from ces_common.sign_of_life import SUBJECT, SignOfLife


async def test_a_controller_finds_its_own_documents_beside_the_others(enter: Enter) -> None:
    compute, network = await enter("compute-ctl"), await enter("network-ctl")
    for bus, kind in ((compute, "compute"), (network, "network")):
        for node in ("n1", "n2"):
            await bus.kv_put(f"{node}.{kind}", b"desired")
        await bus.kv_delete(f"n2.{kind}")
        assert f"n1.{kind}" in await bus.kv_keys(kind)
        assert f"n2.{kind}" not in await bus.kv_keys(kind)


async def test_only_controllers_write_desired_state_each_its_own_kind(enter: Enter) -> None:
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


@pytest.mark.parametrize("durable", subjects.MANAGER_DURABLES)
async def test_the_manager_consumes_under_its_own_names_only(enter: Enter, durable: str) -> None:
    manager = await enter("manager")
    facts: asyncio.Queue[Delivery] = asyncio.Queue()
    dead: asyncio.Queue[Delivery] = asyncio.Queue()
    await manager.publish_fact(subjects.event("job", "cancelled", durable), b"{}", message_id=f"to {durable}")

    async def fail(delivery: Delivery) -> None:
        await facts.put(delivery)
        raise RuntimeError("to see a dead letter")

    await manager.consume(durable, [subjects.events("job", "cancelled")], fail, max_deliver=1)
    async with asyncio.timeout(SOON):
        while (await facts.get()).message_id != f"to {durable}":
            pass
        await manager.consume("manager", [subjects.dead_letter(durable)], dead.put)
        while (await dead.get()).message_id != f"{durable}.to {durable}":
            pass
    for other in ("another", "scheduler"):
        with pytest.raises(AccessRefused):
            await manager.consume(other, [subjects.ALL_EVENTS], fail)


@pytest.mark.parametrize("role", ["scheduler", "compute-ctl", "network-ctl"])
async def test_each_follower_hears_events_and_consumes_none(enter: Enter, role: str) -> None:
    manager, followers = await enter("manager"), [await enter(role) for _ in range(2)]
    heard = [asyncio.Queue[Message]() for _ in followers]
    for follower, queue in zip(followers, heard, strict=True):
        await follower.subscribe(subjects.events("plan", "rejected"), queue.put)
    await manager.publish_fact(subjects.event("plan", "rejected", role), b"{}", message_id=f"no to {role}")
    for queue in heard:
        async with asyncio.timeout(SOON):
            assert (await queue.get()).subject == subjects.event("plan", "rejected", role)
    for durable in (role, "manager", "another"):
        with pytest.raises(AccessRefused):
            await followers[0].consume(durable, [subjects.ALL_EVENTS], nothing_stored)
    for subject in (subjects.ALL_REPORTS, subjects.ALL_HEARTBEATS, f"{subjects.DESIRED_PREFIX}.>"):
        with pytest.raises(AccessRefused):
            await followers[0].subscribe(subject, nothing)


async def nothing_stored(delivery: Delivery) -> None:
    """A handler for what must not come."""


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


async def test_a_service_that_starts_before_the_manager_hears_the_first_event(cluster: Cluster, tmp_path: Path) -> None:
    facts: asyncio.Queue[Message] = asyncio.Queue()
    config = server_config(cluster.trust, store_dir=tmp_path / "store", port=-1)
    with NatsServer(tmp_path / "server", config) as server:
        scheduler, manager = (
            NatsBus(server.url, name=role, credentials=cluster.trust.new_credentials(role, role))
            for role in ("scheduler", "manager")
        )
        await scheduler.connect(deadline_s=SOON)
        await scheduler.subscribe(subjects.events("job"), facts.put)
        with pytest.raises(BusUnavailable):
            await scheduler.publish_fact(subjects.event("plan", "proposed", "p"), b"", message_id="p")
        await manager.connect(deadline_s=SOON)
        await manager.provision()
        await manager.publish_fact(subjects.event("job", "submitted", "j"), b"", message_id="j")
        async with asyncio.timeout(SOON):
            assert (await facts.get()).subject == subjects.event("job", "submitted", "j")
        await scheduler.close()
        await manager.close()


@pytest.mark.parametrize("role", ["compute-ctl", "network-ctl"])
async def test_managers_hear_a_controllers_signs_of_life(enter: Enter, role: str) -> None:
    manager, controller = await enter("manager"), await enter(role)
    heard = asyncio.Event()

    async def hear(message: Message) -> None:
        assert Alive.model_validate_json(message.data).service == role
        heard.set()

    await manager.subscribe(SUBJECT, hear)
    async with asyncio.timeout(60):
        while not heard.is_set():
            await SignOfLife(controller, role).end()
            await asyncio.sleep(0.05)
