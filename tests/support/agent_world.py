"""A whole agent over a bus in memory, on a machine that is none, and the manager that it hears."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_parts import FakeNetwork, FakeTime
from fake_runtime import FakeHost, FakeRuntime
from memory_bus import MemoryBroker, MemoryBus

from ces_common import subjects
from ces_common.bus.port import Message, RemoteError
from ces_common.messages.checkpoints import CheckpointReport
from ces_common.messages.confinement import ConfinementReport
from ces_common.messages.desired import DesiredCompute, DesiredNetwork
from ces_common.messages.reports import (
    OTHER_MACHINE,
    Applied,
    DataReport,
    Heartbeat,
    LeaseGrant,
    LinkReport,
    Progress,
    Status,
)
from ces_common.messages.scores import ScoreReport
from ces_common.natsauth import new_user_key
from ces_edge_agent.agent import Agent
from ces_edge_agent.energy.account import Account
from ces_edge_agent.settings import AgentSettings

PATIENCE_S = 60.0
BEAT_S = 0.02
REPORTS: dict[str, type[Any]] = {
    "status": Status,
    "applied": Applied,
    "progress": Progress,
    "links": LinkReport,
    "data": DataReport,
    "confinement": ConfinementReport,
    "checkpoints": CheckpointReport,
    "scores": ScoreReport,
}
LEASE_S = 30.0


class World:
    """A broker, a manager that grants leases while it is ``there``, and one machine on which an agent may run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broker = MemoryBroker()
        self.bus = MemoryBus(self.broker)
        self.time = FakeTime()
        self.host = FakeHost()
        self.there = True
        self.taken = False  # whether another machine holds the node's lease
        self.readable = True  # whether the manager can read the spec store
        self.epoch, self.least_generation = "e", 0  # what a lease that has ended asks of the node
        self.fetches = 0
        self.late = 0  # heartbeats that come before it answers one
        self.beats: list[Heartbeat] = []
        self.said: dict[str, list[Any]] = {kind: [] for kind in REPORTS}
        self.tasks: list[asyncio.Task[None]] = []
        self.buses: list[MemoryBus] = []

    async def open(self) -> None:
        await self.bus.connect()
        await self.bus.serve(subjects.ALL_HEARTBEATS, self._heartbeat)
        await self.bus.serve(subjects.ALL_FETCHES, self._fetch)
        for kind, model in REPORTS.items():

            async def heard(message: Message, kind: str = kind, model: type[Any] = model) -> None:
                self.said[kind].append(model.model_validate_json(message.data))

            await self.bus.subscribe(subjects.report("n", kind), heard)

    async def _heartbeat(self, message: Message) -> bytes:
        beat = Heartbeat.model_validate_json(message.data)
        assert subjects.parse_heartbeat(message.subject) == beat.node
        self.beats.append(beat)
        number = len(self.beats)
        while len(self.beats) < number + self.late:  # noqa: ASYNC110
            await asyncio.sleep(BEAT_S / 4)
        if not self.there:
            raise RemoteError("away", "the manager is away")
        if self.taken:
            raise RemoteError(OTHER_MACHINE, "another machine holds the lease")
        grant = LeaseGrant(lease_s=LEASE_S, epoch=self.epoch, least_generation=self.least_generation)
        return grant.encode()

    async def _fetch(self, message: Message) -> bytes:
        self.fetches += 1
        if not (self.there and self.readable):
            raise RemoteError("away", "the manager or the spec store is away")
        return await self.bus.kv_get(subjects.parse_fetch(message.subject)) or b""

    async def start(
        self,
        bus: MemoryBus | None = None,
        heartbeat_s: float = BEAT_S,
        resync_s: float = 3600.0,
        lent: bool = False,
        account: Account | None = None,
        measure: bool = False,
    ) -> Agent:
        """An agent on the machine, with what earlier ones left there. ``lent``: the machine has an owner, of whom
        nothing runs. ``account``: of its energy. ``measure``: it measures how fast the machine is."""
        settings = AgentSettings(
            node="n",
            state_dir=self.folder,
            heartbeat_s=heartbeat_s,
            resync_s=resync_s,
            stop_grace_s=1,
            lent=lent,
            measure=measure,
            owner_group="ces-no-such-owner",
        )
        self.runtime, self.network = FakeRuntime(self.folder, self.host), FakeNetwork()
        await self.runtime.open()
        bus = bus or MemoryBus(self.broker)
        self.buses.append(bus)
        agent = Agent(settings, bus, self.runtime, self.network, self.time.clocks(), new_user_key().seed, account)
        self.tasks = [asyncio.create_task(agent.reconcile()), asyncio.create_task(agent.communicate())]
        return agent

    async def stop(self) -> None:
        """As if its process were killed."""
        for task in self.tasks:
            task.cancel()
        ended = await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks = []
        assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended
        for bus in self.buses:
            await bus.close()
        self.buses = []

    def never_started(self, *keys: str) -> None:
        """As if the agent had ended just before it started these workers, or any where none is named."""
        notes = self.folder / "started.json"
        kept = json.loads(notes.read_text())
        for key in keys or tuple(self.host.workers):
            del self.host.workers[key], kept[key]
        notes.write_text(json.dumps(kept))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                for task in self.tasks:
                    assert not task.done(), task.exception()
                await asyncio.sleep(BEAT_S / 4)

    async def want(self, *documents: DesiredCompute | DesiredNetwork) -> None:
        for document in documents:
            kind = "compute" if isinstance(document, DesiredCompute) else "network"
            await self.bus.kv_put(f"n.{kind}", document.encode())

    async def beats_more(self, count: int = 3) -> None:
        """Wait until the agent has been around for some heartbeats."""
        before = len(self.beats)
        await self.until(lambda: len(self.beats) >= before + count)

    def states(self) -> dict[str, str]:
        return {key: status.state for key, status in self.host.workers.items()}
