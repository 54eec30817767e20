"""What an agent may do on a real server, and that everything else is refused for want of permission.

Each refusal stands beside the same action that is allowed (to the same identity under its own name, or to whom it is
meant for), so that no test passes because the action could not have worked at all.
"""

from __future__ import annotations

import asyncio
import json

import pytest
from nats_identities import KV, SOON, Enter, ask, nothing, send_and_see

from ces_common import subjects
from ces_common.bus.port import AccessRefused, Delivery, Message


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
    await controller.kv_put("n1.compute", b"desired")

    assert await asyncio.wait_for(heard.get(), SOON) == ("n1.compute", b"desired")
    assert await agent.kv_get("n1.compute") == b"desired"
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
    for pattern in (f"{subjects.DESIRED_PREFIX}.>", f"{subjects.DESIRED_PREFIX}.*.compute", ">", "*.>", "$JS.>"):
        with pytest.raises(AccessRefused):
            await agent.subscribe(pattern, nothing)
    await agent.subscribe(subjects.desired_subjects("n1"), nothing)


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
        subjects.desired_subject("n1.compute"),
        subjects.desired_subject("n2.compute"),
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
    f"$JS.API.STREAM.MSG.GET.{KV}": {"last_by_subj": "$KV.ces_desired.n1.compute"},
    f"$JS.API.STREAM.MSG.DELETE.{KV}": {"seq": 1},
    f"$JS.API.DIRECT.GET.{KV}": {"last_by_subj": "$KV.ces_desired.n2.compute"},
    f"$JS.API.CONSUMER.CREATE.{KV}": CONSUMER,
    f"$JS.API.CONSUMER.CREATE.{KV}.spy": CONSUMER,
    f"$JS.API.CONSUMER.CREATE.{KV}.spy.$KV.ces_desired.n1.compute": CONSUMER,
    f"$JS.API.CONSUMER.DURABLE.CREATE.{KV}.spy": CONSUMER,
    f"$JS.API.CONSUMER.LIST.{KV}": "",
    f"$JS.API.CONSUMER.MSG.NEXT.{subjects.EVENT_STREAM}.manager": "",
}


@pytest.mark.parametrize("subject", FORBIDDEN_API)
async def test_an_agent_has_no_other_way_into_the_store(enter: Enter, subject: str) -> None:
    controller, agent = await enter("compute-ctl"), await enter("agent", "n1")
    await controller.kv_put("n1.compute", b"one")
    own = f"$JS.API.DIRECT.GET.{KV}.{subjects.desired_subject('n1.compute')}"
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
    own = f"$JS.API.DIRECT.GET.{KV}.{subjects.desired_subject('n1.compute')}"
    for reply in (
        subjects.desired_subject("n2.compute"),
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
