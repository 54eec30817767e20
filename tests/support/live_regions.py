"""Regions in one process, on real servers and databases: managers, schedulers and federation services with their real
code; of nodes there are the books alone. A job that is committed stays, so that places are counted by it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Network
from pathlib import Path

from manager_world import World, full_mesh, sqlite_url
from region_servers import Region as Server
from region_servers import World as Servers
from sqlalchemy import select

from ces_common.bus.nats import NatsBus
from ces_common.db import UnitOfWork
from ces_common.db.region_tables import AwayRow, GuestRow
from ces_common.db.tables import JobRow
from ces_common.jobfile import JobFile
from ces_common.messages.regions import HOLD_S
from ces_common.natsauth.regions import wire_credentials
from ces_common.queuefile import QueueFile
from ces_common.states import JOB_OVER, JobState
from ces_core.registry import get_solver
from ces_federation.peers import PeersFile
from ces_federation.service import Federation
from ces_federation.settings import FederationSettings
from ces_manager.broadcast import Broadcast
from ces_manager.database import Database
from ces_manager.duties import RELAY, TIME
from ces_manager.jobs.submission import submit_job
from ces_manager.measurements import Measurements
from ces_manager.messaging.handlers import Messaging
from ces_manager.messaging.region_requests import RegionRequests
from ces_manager.messaging.relay import Relay
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.queue.live import LiveQueue
from ces_manager.regions.hold_ends import end_holds
from ces_manager.timeouts import Timeouts
from ces_scheduler.cycle_input import parameters_of
from ces_scheduler.cycle_run import Placing
from ces_scheduler.service import Scheduler

QUEUE = QueueFile()
RESYNC_S = 30.0
SOLVER = "greedy"
DUTIES = {TIME, RELAY}


class AllDuties:
    def holds(self, duty: str) -> bool:
        return duty in DUTIES


class LiveRegion:
    """``cpu``: millicores of each of its nodes. ``trust``: what its file says of each other region; beside it its
    ``block`` of addresses, and the ``choice`` and ``policy`` by which it chooses others, where not as usual."""

    def __init__(
        self, server: Server, folder: Path, number: int, others: Sequence[str], nodes: int, cpu: int, **trust: object
    ) -> None:
        self.name, self.server = server.name, server
        folder.mkdir(parents=True)
        self.world = World(sqlite_url(folder))
        names = [f"{server.name}n{i}" for i in range(nodes)]
        self.world.add_nodes(*names, cpu=cpu, memory=2**36)
        if len(names) > 1:
            self.world.put_topology(full_mesh(names))
        self.database = Database(UnitOfWork(self.world.uow.engine))
        self._buses = [
            NatsBus(server.server.url, name=role, credentials=server.trust.new_credentials(role, role))
            for role in ("manager", "scheduler", "federation")
        ]
        self.wire = NatsBus(
            server.server.url, name=server.name, credentials=wire_credentials(server.trust, server.account, server.name)
        )
        block = IPv4Network(f"10.{64 + number}.0.0/16")
        settings = FederationSettings(
            region=server.name,
            regions_file=folder,
            wire_creds=folder,
            address_block=trust.pop("block", block),
            region_choice=trust.pop("choice", "rule"),
            region_policy=trust.pop("policy", None),
        )
        peers = {
            other: {"token": f"a secret of {'-'.join(sorted((server.name, other)))} and of no third one", **trust}
            for other in others
            if other != server.name
        }
        self.federation = Federation(
            self._buses[2], self.wire, settings, PeersFile.model_validate({"peers": peers}).peers
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        manager, scheduler, federation = self._buses
        for bus in (manager, scheduler, federation, self.wire):
            await bus.connect(deadline_s=30)
        await manager.provision()
        relay, measurements, broadcast = Relay(self.database.uow, manager), Measurements(), Broadcast()
        self.database.on_commit(relay.hint.set)
        detector = FailureDetector(self.database.clock.steady)
        await Messaging(self.database, manager, Timeouts(), detector, measurements, broadcast, QUEUE).start()
        live = LiveQueue(manager, self.database.clock.steady)
        await RegionRequests(manager, self.database, live, QUEUE, measurements).serve()
        placing = Placing(get_solver(SOLVER), parameters_of(QUEUE))
        work = [
            relay.run(),
            end_holds(self.database, AllDuties()),  # type: ignore[arg-type]
            Scheduler(scheduler, placing, RESYNC_S).run(),
            self.federation.run(),
        ]
        self._tasks = [asyncio.create_task(each) for each in work]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        failed = await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.federation.close()
        for bus in (*self._buses, self.wire):
            await bus.close()
        self.database.close()
        self.world.close()
        left = [each for each in failed if not isinstance(each, asyncio.CancelledError)]
        assert not left, left

    async def submit(self, file: JobFile) -> str:
        return (await self.database.write(lambda tx: submit_job(tx, file))).id

    def all_guests(self) -> list[tuple[GuestRow, JobRow]]:
        with self.world.uow.read() as tx:
            rows = tx.session.execute(select(GuestRow, JobRow).join(JobRow, JobRow.id == GuestRow.job))
            return [(guest, row) for guest, row in rows]

    def guests(self) -> list[tuple[GuestRow, JobRow]]:
        """Those that are not over."""
        return [(guest, row) for guest, row in self.all_guests() if row.state not in JOB_OVER]

    def not_taken(self, job: str) -> dict[str, str]:
        with self.world.uow.read() as tx:
            return tx.session.get_one(AwayRow, job).not_taken or {}

    def state(self, job: str) -> JobState:
        return self.world.job(job).state

    def reason(self, job: str) -> str | None:
        with self.world.uow.read() as tx:
            return tx.session.get_one(JobRow, job).reason

    def states(self) -> list[JobState]:
        with self.world.uow.read() as tx:
            return list(tx.session.scalars(select(JobRow.state)))

    def oldest_hold_s(self) -> float:
        now = self.database.clock.now()
        ages = [HOLD_S - (each.hold_until - now).total_seconds() for each, _ in self.guests() if not each.committed]
        return max(ages, default=0.0)


@asynccontextmanager
async def running(
    servers: Servers, folder: Path, rooms: dict[str, tuple[int, int]], **trust: object
) -> AsyncIterator[dict[str, LiveRegion]]:
    """``rooms``: of each region, how many nodes it has, and of how many millicores."""
    made = {
        name: LiveRegion(servers.regions[name], folder / name, number, list(rooms), *room, **trust)
        for number, (name, room) in enumerate(rooms.items())
    }
    try:
        for region in made.values():
            await region.start()
        yield made
    finally:
        for region in made.values():
            await region.close()


def one_core(name: str, cpu: str = "1", **more: object) -> JobFile:
    """A job that fills a place of one core, or of so many."""
    group = {"name": "w", "command": ["true"], "resources": {"cpu": cpu, "memory": "64Mi"}}
    return JobFile.model_validate({"name": name, "tasks": [group], "regions": ["any"], **more})
