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
from ces_common.bus.port import AccessRefused, Message


async def test_an_agent_does_everything_it_has_to(enter: Enter) -> None:
    controller, manager, agent = await enter("compute-ctl"), await enter("manager"), await enter("agent", "n1")
    heard: asyncio.Queue[tuple[str, bytes | None]] = asyncio.Queue()
    reports: asyncio.Queue[Message] = asyncio.Queue()

    async def on_key(key: str, data: bytes | None) -> None:
        await heard.put((key, data))

    async def lease(message: Message) -> bytes:
        return b"lease for " + message.subject.encode()

    async def fetch(message: Message) -> bytes:
        return await manager.kv_get(subjects.parse_fetch(message.subject)) or b""

    async def logs(message: Message) -> bytes:
        return b"log line\n" * 10_000

    await agent.kv_subscribe("n1", on_key)
    await agent.serve(subjects.agent_rpc("n1", "logs"), logs)
    await manager.subscribe(subjects.ALL_REPORTS, reports.put)
    await manager.serve(subjects.ALL_HEARTBEATS, lease)
    await manager.serve(subjects.ALL_FETCHES, fetch)
    await controller.kv_put("n1.compute", b"desired")

    assert await asyncio.wait_for(heard.get(), SOON) == ("n1.compute", b"desired")
    assert await agent.request(subjects.fetch("n1", "compute")) == b"desired"
    assert await agent.request(subjects.fetch("n1", "network")) == b""
    assert await agent.request(subjects.heartbeat("n1"), b"beat") == b"lease for ces.v1.hb.n1"
    for kind in subjects.REPORT_KINDS:
        await agent.publish(subjects.report("n1", kind), b"x")
        assert (await asyncio.wait_for(reports.get(), SOON)).subject == subjects.report("n1", kind)
    assert await manager.request(subjects.agent_rpc("n1", "logs")) == b"log line\n" * 10_000


async def test_an_agent_reads_no_other_nodes_keys(enter: Enter) -> None:
    manager, agent = await enter("manager"), await enter("agent", "n1")

    async def answer(message: Message) -> bytes:
        return subjects.parse_fetch(message.subject).encode()

    await manager.serve(subjects.ALL_FETCHES, answer)
    assert await agent.request(subjects.fetch("n1", "compute")) == b"n1.compute"
    with pytest.raises(AccessRefused):
        await agent.request(subjects.fetch("n2", "compute"))
    with pytest.raises(AccessRefused):
        await agent.kv_get("n1.compute")

    async def on_key(key: str, data: bytes | None) -> None:
        raise AssertionError(f"heard {key}")

    with pytest.raises(AccessRefused):
        await agent.kv_subscribe("n2", on_key)
    stored, told = subjects.DESIRED_PREFIX, subjects.DESIRED_CHANGES
    for pattern in (f"{stored}.>", f"{stored}.n1.*", f"{told}.>", f"{told}.*.compute", ">", "*.>", "$JS.>"):
        with pytest.raises(AccessRefused):
            await agent.subscribe(pattern, nothing)
    await agent.subscribe(subjects.desired_changes("n1"), nothing)


@pytest.mark.parametrize(
    "subject",
    [
        "ces.v1.hb.{}",
        "ces.v1.agent.{}.status",
        "ces.v1.agent.{}.applied",
        "ces.v1.fetch.{}.network",
        "ces.v1.renew.{}",
        "ces.v1.secrets.{}",
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
        subjects.desired_change("n1.compute"),
        subjects.desired_change("n2.compute"),
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
    [
        "ces.v1.hb.*",
        "ces.v1.fetch.>",
        "ces.v1.secrets.>",
        "ces.v1.secrets.n1",
        "ces.v1.agent.>",
        "ces.v1.evt.>",
        "ces.v1.rpc.manager.>",
        "ces.v1.rpc.agent.n2.>",
        "_INBOX.>",
    ],
)
async def test_an_agent_hears_nothing_else(enter: Enter, subject: str) -> None:
    agent = await enter("agent", "n1")
    with pytest.raises(AccessRefused):
        await agent.subscribe(subject, nothing)


async def test_the_store_answers_those_who_may_ask(enter: Enter) -> None:
    """The counterpart to the refusals in ``test_nats_agent_store``: the same requests do work."""
    manager, controller = await enter("manager"), await enter("compute-ctl")
    assert json.loads(await ask(manager, f"$JS.API.STREAM.INFO.{KV}"))["config"]["name"] == KV
    assert json.loads(await ask(controller, f"$JS.API.STREAM.INFO.{KV}"))["config"]["allow_direct"] is False


async def test_no_answer_can_be_turned_into_a_write(enter: Enter) -> None:
    """An agent names the reply subject of its requests; the manager answers to that agent's own inbox only."""
    manager, agent, other = await enter("manager"), await enter("agent", "n1"), await enter("agent", "n2")
    answered: asyncio.Queue[Message] = asyncio.Queue()
    heard: asyncio.Queue[Message] = asyncio.Queue()

    async def answer(message: Message) -> bytes:
        await answered.put(message)
        return b"answer"

    await manager.serve(subjects.ALL_HEARTBEATS, answer)
    await manager.serve(subjects.ALL_FETCHES, answer)
    await manager.subscribe(subjects.ALL_REPORTS, heard.put)
    await manager.subscribe("_INBOX.manager.guessed", heard.put)
    await other.subscribe("_INBOX.n2.guessed", heard.put)
    await other.subscribe(subjects.desired_changes("n2"), heard.put)
    not_its_own = [subjects.report("n2", "status"), subjects.desired_change("n2.compute"), ""]
    not_its_own += ["_INBOX.manager.guessed", "_INBOX.n2.guessed", "_INBOX.n1", "_INBOX.n10.x"]
    for subject in (subjects.heartbeat("n1"), subjects.fetch("n1", "compute")):
        for reply in not_its_own:
            assert await send_and_see(agent, subject, reply=reply) is True
        assert await agent.request(subject, b"real") == b"answer"
        assert (await answered.get()).data == b"real"
    assert heard.empty()
    assert answered.empty()
