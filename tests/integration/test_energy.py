"""Energy on a real machine: a whole agent, worker processes in control groups, and energy counters that are files."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from agent_parts import compute, network, worker
from kernel_files import Powercap
from memory_bus import MemoryBroker, MemoryBus
from waiting import until

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.cgroups import hierarchies
from ces_common.messages.energy import EnergyReport
from ces_common.messages.reports import Heartbeat, LeaseGrant
from ces_common.natsauth import new_user_key
from ces_edge_agent.__main__ import energy_account, make_network, make_runtime
from ces_edge_agent.agent import Agent
from ces_edge_agent.lease import machine_clocks
from ces_edge_agent.settings import AgentSettings
from ces_manager.energy.counting import NodeCount, count
from ces_manager.energy_book import Told

pytestmark = pytest.mark.needs("root")
BUSY = "while :; do :; done"
WATTS = 30
STEP_S = 0.05


class Machine:
    """Its processor uses WATTS, by counters that soon go round. ``counted``: microjoules so far."""

    def __init__(self, folder: Path) -> None:
        self.name, self.powercap = f"en{uuid4().hex[:8]}", Powercap(folder / "powercap", packages=2)
        self.settings = AgentSettings(
            node=self.name, state_dir=folder / "agent", heartbeat_s=0.2, powercap=self.powercap.root, power_idle=10,
            node_cpu=2,
        )  # fmt: skip
        self.counted, self.begin = 0, self.powercap.span - WATTS * 1_000_000  # after a second it goes round
        self.broker, self.beats = MemoryBroker(), list[Heartbeat]()
        self.tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        self.bus = MemoryBus(self.broker)
        await self.bus.connect()
        await self.bus.serve(subjects.ALL_HEARTBEATS, self._lease)
        await self.bus.serve(subjects.ALL_FETCHES, self._document)
        self.using = asyncio.create_task(self._use())

    async def _lease(self, message: Message) -> bytes:
        self.beats.append(Heartbeat.model_validate_json(message.data))
        return LeaseGrant(lease_s=30, epoch="e").encode()

    async def _document(self, message: Message) -> bytes:
        return await self.bus.kv_get(subjects.parse_fetch(message.subject)) or b""

    async def _use(self) -> None:
        since = time.monotonic()
        while True:
            self.counted = round(WATTS * (time.monotonic() - since) * 1_000_000)
            self.powercap.counts(self.begin + self.counted, 5_000_000)  # the second package is off
            await asyncio.sleep(STEP_S)

    async def start(self) -> None:
        """An agent, which finds what an earlier one left."""
        runtime, links = make_runtime(self.settings), make_network(self.settings)
        await runtime.open()
        bus, account = MemoryBus(self.broker), energy_account(self.settings)
        agent = Agent(self.settings, bus, runtime, links, machine_clocks(), new_user_key().seed, account)
        self.tasks = [asyncio.create_task(agent.reconcile()), asyncio.create_task(agent.communicate())]

    async def stop(self) -> None:
        """Its agent ends, its workers go on."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks = []

    async def clear(self) -> None:
        await self.stop()
        self.using.cancel()
        runtime = make_runtime(self.settings)
        await runtime.open()
        for key in await runtime.workers():
            await runtime.stop(key, 0)
            await runtime.remove(key)
        for allocation in await runtime.sandboxes():
            await runtime.remove_sandbox(allocation)
        await runtime.close()

    async def want(self, *allocations: str, generation: int) -> None:
        workers = [
            worker(each, command=["sh", "-c", BUSY if each == "busy" else "sleep 600"], cpu=1000, memory=2**27)
            for each in allocations
        ]
        desired = compute(*workers, generation=generation, node=self.name)
        await self.bus.kv_put(f"{self.name}.network", network(*allocations, node=self.name).encode())
        await self.bus.kv_put(f"{self.name}.compute", desired.encode())

    def told(self) -> EnergyReport | None:
        return self.beats[-1].energy if self.beats else None

    async def tells(self, joules: float) -> EnergyReport:
        """Wait until the agent has told of so much."""
        await until(lambda: (told := self.told()) is not None and told.total >= joules * 1_000_000)
        told = self.told()
        assert told is not None
        return told


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    assert hierarchies(), "no control groups are mounted"
    made = Machine(tmp_path)
    await made.open()
    yield made
    await made.clear()


async def test_who_works_uses_more_than_who_sleeps_and_all_add_up_over_two_starts(machine: Machine) -> None:
    await machine.want("busy", "idle", generation=1)
    await machine.start()
    await until(lambda: (told := machine.told()) is not None and told.allocations.keys() >= {"busy", "idle"})
    first = await machine.tells(3 * WATTS)
    assert (first.source, first.meter) == ("measured", "rapl")
    assert first.total <= machine.counted, "the counter has gone round, and nothing was told that was not used"
    busy, idle = first.allocations["busy"], first.allocations["idle"]
    assert busy > idle > 0, "both reserve half of the machine, and one of them works"
    assert busy + idle <= first.total
    boots = {beat.boot for beat in machine.beats}

    await machine.stop()
    last = machine.told()
    assert last is not None
    await machine.start()
    await until(lambda: machine.beats[-1].boot not in boots)
    second = await machine.tells(2 * WATTS)
    assert second.total < machine.counted - last.total + 1_000_000, "it begins at nothing again"
    assert second.allocations["busy"] > second.allocations["idle"], "the workers of before are its own"

    starts = [Told("first", last), Told("second", second)]
    known = count(NodeCount(), starts, ["busy", "idle"], 3600)
    assert known.node.total == last.total + second.total <= machine.counted
    parts = sum(each.total for each in known.allocations.values())
    system = known.node.total - known.jobs_measured
    assert parts + system == known.node.total
    assert known.jobs_measured == parts
