"""Heartbeats of many nodes over a real broker into a real database: none waits behind those that nobody waits for any
more, nor behind what users have asked for."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import nats
import pytest
from manager_world import World, ring, sqlite_url
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats_process import NatsServer, plain_config
from sqlalchemy import select

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.db.tables import LeaseRow
from ces_common.messages.reports import Heartbeat
from ces_manager.broadcast import Broadcast
from ces_manager.database import Database
from ces_manager.jobs import submission
from ces_manager.measurements import Measurements
from ces_manager.messaging.handlers import Messaging
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.timeouts import Timeouts

PATIENCE_S = 60.0
NODES = [f"n{i}" for i in range(200)]
ROUNDS = 5
SUBMISSIONS = 300


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(sqlite_url(tmp_path))
    yield world
    world.close()


@dataclass
class Manager:
    url: str  # of its broker
    database: Database


@pytest.fixture
async def manager(tmp_path: Path, world: World) -> AsyncIterator[Manager]:
    with NatsServer(tmp_path / "nats", plain_config(tmp_path / "nats" / "store")) as server:
        bus, database = NatsBus(server.url, name="manager"), Database(world.uow)
        await bus.connect(deadline_s=PATIENCE_S)
        await Messaging(
            database, bus, Timeouts(), FailureDetector(database.clock.steady), Measurements(), Broadcast()
        ).start()
        yield Manager(server.url, database)
        await bus.close()
        database.close()


class Agents:
    """All agents on one connection, each with an inbox for each round; counts the answers."""

    def __init__(self, client: Client) -> None:
        self._client, self.answered, self._news = client, Counter[str](), asyncio.Event()

    async def _on_answer(self, message: Msg) -> None:
        _, node, number = message.subject.split(".")
        assert message.headers is None, (message.headers, message.data)
        self.answered[f"{node}.{number}"] += 1
        self._news.set()

    async def listen(self) -> None:
        await self._client.subscribe("_INBOX.*.*", cb=self._on_answer)

    async def beat(self, number: int) -> None:
        for node in NODES:
            data = Heartbeat(node=node, boot="b").encode()
            await self._client.publish(subjects.heartbeat(node), data, reply=f"{subjects.inbox_prefix(node)}.{number}")
        await self._client.flush()

    async def until_answered(self, number: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not all(self.answered[f"{node}.{number}"] for node in NODES):
                self._news.clear()
                await self._news.wait()


@pytest.fixture
async def agents(manager: Manager) -> AsyncIterator[Agents]:
    client = await nats.connect(manager.url)
    agents = Agents(client)
    await agents.listen()
    yield agents
    await client.close()


async def test_a_manager_that_was_held_up_answers_the_newest_heartbeat_of_each_node_and_no_older_one(
    world: World, agents: Agents, tmp_path: Path
) -> None:
    world.add_nodes(*NODES)
    held = sqlite3.connect(tmp_path / "ces.db", isolation_level=None)
    held.execute("BEGIN IMMEDIATE")  # as a slow disk would hold up every lease
    for number in range(ROUNDS):
        await agents.beat(number)
    held.execute("ROLLBACK")
    held.close()
    await agents.until_answered(ROUNDS - 1)
    # Some may have been on their way when the manager was held up; all others were overtaken by their senders.
    assert agents.answered.total() <= 2 * len(NODES)
    with world.uow.read() as tx:
        beats = tx.session.scalars(select(LeaseRow.beats)).all()
    assert max(beats) <= 1 + 2, "the first is from before"


async def test_leases_do_not_wait_behind_what_users_submit(world: World, manager: Manager, agents: Agents) -> None:
    world.add_nodes(*NODES)
    write = manager.database.write
    submissions = [
        asyncio.create_task(write(lambda tx, i=i: submission.submit_job(tx, ring(f"job-{i}"), None)))
        for i in range(SUBMISSIONS)
    ]
    await asyncio.wait(submissions, return_when=asyncio.FIRST_COMPLETED)
    await agents.beat(0)
    await agents.until_answered(0)
    done = sum(task.done() for task in submissions)
    await asyncio.gather(*submissions)
    assert done < SUBMISSIONS / 2
