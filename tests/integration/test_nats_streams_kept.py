"""Streams, bucket and consumers that vanish from a real server come back by themselves, and everything goes on."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, DeliverPolicy
from nats_identities import KV, SOON, administrator
from nats_process import NatsServer
from structlog.testing import capture_logs

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.nats_streams import STREAMS
from ces_common.bus.port import BusError, Delivery, Message
from ces_common.natsauth import init_trust, server_config
from ces_manager.messaging.streams import StreamKeeper

TICK_S = 0.05
NAMES = [str(stream.name) for stream in STREAMS]


@dataclass
class Kept:
    """A broker whose streams the manager keeps, with somebody who can delete them."""

    js: JetStreamContext
    manager: NatsBus
    compute: NatsBus
    agent: NatsBus
    heard: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    told: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    number: int = 0

    async def fact(self, delivery: Delivery) -> None:
        await self.heard.put(delivery.message_id)

    async def change(self, key: str, data: bytes | None) -> None:
        await self.told.put(data)

    async def fetch(self, message: Message) -> bytes:
        return await self.manager.kv_get(subjects.parse_fetch(message.subject)) or b""

    async def works(self) -> None:
        """A new fact reaches the manager, and a new document its node, told and asked for."""
        self.number += 1
        fact, document = f"m{self.number}", b"%d" % self.number
        async with asyncio.timeout(SOON):
            subject = subjects.event("job", "queued", "j")
            await _eventually(lambda: self.manager.publish_fact(subject, b"", message_id=fact))
            while await self.heard.get() != fact:
                pass
            await _eventually(lambda: self.compute.kv_put("n1.compute", document))
            while await self.told.get() != document:
                pass
            assert await self.agent.request(subjects.fetch("n1", "compute")) == document


async def _eventually(attempt: Callable[[], Awaitable[object]]) -> None:
    """Until it no longer fails for want of what is being made again."""
    while True:
        try:
            await attempt()
            return
        except BusError:
            await asyncio.sleep(TICK_S)


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SOON):
        while True:
            if await condition():
                return
            await asyncio.sleep(TICK_S)


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    trust = init_trust(tmp_path / "trust")
    with NatsServer(tmp_path / "server", server_config(trust, store_dir=tmp_path / "store", port=-1)) as server:
        roles = {"manager": "manager", "compute-ctl": "compute-ctl", "n1": "agent"}
        buses = [
            NatsBus(server.url, name=name, credentials=trust.new_credentials(role, name))
            for name, role in roles.items()
        ]
        for bus in buses:
            await bus.connect(deadline_s=SOON)
        manager, compute, agent = buses
        admin = await administrator(server.url, trust)
        kept = Kept(admin.jetstream(), manager, compute, agent)
        keeper = StreamKeeper(manager, TICK_S)
        await keeper.made()
        keeping = asyncio.create_task(keeper.run())
        await manager.serve(subjects.ALL_FETCHES, kept.fetch)
        await manager.consume("manager", [subjects.events("job")], kept.fact)
        await agent.kv_subscribe("n1", kept.change)
        await kept.works()
        yield kept
        keeping.cancel()
        await admin.close()
        for bus in buses:
            await bus.close()


@pytest.mark.parametrize("gone", [[name] for name in NAMES] + [NAMES], ids=lambda names: "+".join(names))
async def test_what_is_deleted_comes_back_and_everything_goes_on(kept: Kept, gone: list[str]) -> None:
    for name in gone:
        await kept.js.delete_stream(name)

    async def there() -> bool:
        return {each.config.name for each in await kept.js.streams_info()} == set(NAMES)

    await _until(there)
    await kept.works()


async def test_a_new_stream_whose_folder_is_gone_is_told_of_with_the_remedy(kept: Kept, tmp_path: Path) -> None:
    """As when clients of two processes make it at once."""
    (folder,) = (tmp_path / "store").rglob(f"streams/{KV}")
    shutil.rmtree(folder)
    with pytest.raises(
        BusError, match=f"stream {KV} acknowledges nothing, since the broker has lost its folder: delete"
    ):
        await kept.manager.provision()
    await kept.js.delete_stream(KV)
    await _until(lambda: asyncio.sleep(0, folder.is_dir()))
    await kept.works()


async def test_who_makes_streams_at_once_in_one_process_leaves_none_that_acknowledges_nothing(kept: Kept) -> None:
    other = StreamKeeper(kept.manager, TICK_S)
    for _ in range(3):
        for name in NAMES:
            await kept.js.delete_stream(name)
        await asyncio.gather(other.made(), kept.manager.provision())
        await kept.works()


async def test_a_bucket_that_vanished_is_there_before_anybody_writes_to_it(kept: Kept) -> None:
    await kept.js.delete_stream(KV)
    await _until(lambda: _answers(kept))


async def _answers(kept: Kept) -> bool:
    try:
        return await kept.agent.request(subjects.fetch("n1", "compute")) == b""
    except BusError:
        return False


async def test_a_consumer_that_vanished_comes_back_without_anybody_writing(kept: Kept) -> None:
    await kept.js.delete_consumer(subjects.EVENT_STREAM, "manager")

    async def there() -> bool:
        return [each.name for each in await kept.js.consumers_info(subjects.EVENT_STREAM)] == ["manager"]

    await _until(there)
    await kept.works()


async def test_a_consumer_that_nobody_reads_any_more_keeps_nothing(kept: Kept) -> None:
    """Such as those that schedulers and controllers of former versions had."""
    await kept.js.add_consumer(
        subjects.EVENT_STREAM,
        durable_name="scheduler",
        ack_policy=AckPolicy.EXPLICIT,
        deliver_policy=DeliverPolicy.ALL,
    )
    config = (await kept.js.stream_info(subjects.EVENT_STREAM)).config
    await kept.js.update_stream(config.evolve(max_msgs=3))
    for _ in range(5):
        await kept.works()
    assert (await kept.js.stream_info(subjects.EVENT_STREAM)).state.messages == 3


async def test_what_is_as_it_should_be_is_left_alone(kept: Kept) -> None:
    with capture_logs() as logs:
        await kept.manager.provision()
    assert logs == []


async def test_a_bucket_as_the_former_version_made_it_is_closed_and_told_of(kept: Kept) -> None:
    config = (await kept.js.stream_info(KV)).config
    await kept.js.update_stream(config.evolve(allow_direct=True, republish=None))

    async def corrected() -> bool:
        config = (await kept.js.stream_info(KV)).config
        return config.allow_direct is False and config.republish is not None

    await _until(corrected)
    await kept.works()


async def test_what_was_changed_is_put_back_but_for_what_was_raised(kept: Kept) -> None:
    info = await kept.js.stream_info(subjects.EVENT_STREAM)
    more = (info.config.max_bytes or 0) + 2**20
    await kept.js.update_stream(info.config.evolve(allow_direct=True, max_age=3600.0, max_bytes=more))

    async def put_back() -> bool:
        config = (await kept.js.stream_info(subjects.EVENT_STREAM)).config
        assert config.max_bytes == more
        return (config.allow_direct, config.max_age) == (False, info.config.max_age)

    await _until(put_back)
