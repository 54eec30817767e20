"""Three regions in one process, on time that is told to pass: their federation services and the managers' part for them
with their real code, on a SQLite file each. A home's job finds room in one of two others; what its scheduler and its
agents would do is played here. Processes are killed between any two of their steps, messages between regions come late
or never, and databases are put back to what they were."""

from __future__ import annotations

import asyncio
import logging
import random
import sqlite3
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from ipaddress import IPv4Network
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import structlog
import ulid
from manager_world import START, World, ring
from memory_bus import MemoryBroker
from mortal_database import MortalUnitOfWork
from processes import NOBODY, PROCESS, Killed, Processes
from region_books import NODES, Books
from sqlalchemy import select, update
from stepped_loop import SteppedLoop
from unruly_bus import PostOffice, UnrulyBus, Way, nothing

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.db.region_tables import AwayRow, GuestRow
from ces_common.db.tables import AllocationRow, ClusterRow, JobRow
from ces_common.messages.events import PlanRefused, Reason
from ces_common.messages.queries import PlanAnswer
from ces_common.messages.regions import HOLD_S
from ces_common.queuefile import QueueFile
from ces_common.states import JOB_OVER, JobState
from ces_federation.peers import PeersFile
from ces_federation.service import Federation
from ces_federation.settings import FederationSettings
from ces_manager.clock import Clock
from ces_manager.database import Database
from ces_manager.measurements import Measurements
from ces_manager.messaging.region_requests import RegionRequests
from ces_manager.plans.refusal import note_refusal
from ces_manager.queue.live import LiveQueue
from ces_manager.regions.hold_ends import end_holds

HOME, OWNERS = "h", ("p", "q")
REGIONS = (HOME, *OWNERS)
LOOK_S = 0.25  # between two looks for news, of what is played here
AT_LEAST_EVERY_S = 3.0
HOLD_ENDS_S = HOLD_S + 1.0  # a hold is no older than that
NO_ROOM = Reason(code="capacity", text="no room")
# said all the time, job or not
QUIET = ("summary", "region-totals", "region-offers", "region-away", "region-borders", "split-open", "queue")
STARTS_AGAIN = frozenset({JobState.STARTING, JobState.RUNNING})
PLACED = frozenset({JobState.PLANNED, JobState.PREPARING})


class Always:
    """A manager's duties, where there is one manager."""

    def holds(self, duty: str) -> bool:
        return True


class Post(PostOffice):
    """``step`` is told of everything that a process says and hears, before it does; true: it dies of it. ``fate``: how
    late what one region says to another is, in seconds; None where it is lost."""

    def __init__(self, loop: SteppedLoop) -> None:
        super().__init__()
        self._loop = loop
        self.step: Callable[[str, str, str], bool] = lambda process, way, subject: False
        self.fate: Callable[[], float | None] = lambda: 0.0

    def send(
        self, process: str, way: Way, subject: str, arrive: Callable[[], None], lost: Callable[[], None] = nothing
    ) -> None:
        if self.step(process, way, subject):
            if PROCESS.get() == process:
                raise Killed
            lost()
            return
        late_s = self.fate() if way == "out" and _between(subject) is not None else 0.0
        if late_s is None:
            lost()
        elif late_s > 0:
            later = lambda: PostOffice.send(self, process, way, subject, arrive, lost)  # noqa: E731
            self._loop.call_later(late_s, later, context=NOBODY.copy())
        else:
            super().send(process, way, subject, arrive, lost)


def _between(subject: str) -> str | None:
    """What is said between regions; None for any other subject."""
    try:
        return subjects.parse_between_regions(subject)[2]
    except ValueError:
        return None


class Regions:
    """``chance`` decides what is left open. ``room_at_home``: when home has room after all, in seconds; None: never.
    ``ran``: of the home's job, the places where it was started, one for each start."""

    def __init__(self, books: dict[str, Books], chance: random.Random, *, room_at_home: float | None = None) -> None:
        self.books, self.chance, self.room_at_home = books, chance, room_at_home
        self.loop = SteppedLoop()
        self.loop.set_exception_handler(self._unforeseen)
        self.post, self.errors = Post(self.loop), list[str]()
        self.post.step = self._step
        self.processes = Processes(self.loop, self.errors.append)
        self._undo = ExitStack()
        self._logging = structlog.get_config()
        structlog.configure([self._logged], structlog.make_filtering_bound_logger(logging.ERROR))
        numbers = count(1)
        ids = ulid.ULIDGenerator(
            lambda: round(self.now().timestamp() * 1000), lambda _: next(numbers).to_bytes(10, "big")
        )
        self._undo.enter_context(patch.object(ulid, "default_generator", ids))
        self._undo.enter_context(patch("ces_federation.wire.time.monotonic", self.loop.time))
        self.wire, self.brokers = MemoryBroker(), {name: MemoryBroker() for name in REGIONS}
        self.buses: dict[str, list[UnrulyBus]] = {}  # of the processes that live
        self.ran: list[str] = []
        self.running: dict[tuple[str, str], float] = {}  # region and job -> until when its workers run
        self._news = set(REGIONS)  # where something was written
        self.steps: list[str] = []  # of the processes of home, each once
        self.at_step: Callable[[str, str], None] = lambda process, step: None
        self._dying: set[str] = set()
        self._serving: dict[str, str] = {}  # process -> what it was asked last
        self._questions: dict[str, str] = {}  # between regions, by id
        self._epochs = count(2)
        self.life_s = chance.choice([0.5, 3.0, 9.0])
        for each in books.values():
            each.put_back()
        for name in REGIONS:
            for part in ("manager", "federation", "rest"):
                self.start(f"{name}-{part}")
        self.job = self.world(HOME).submit(self.file())

    @staticmethod
    def file() -> Any:
        """For which each region has room once."""
        file = ring(tasks=2, regions=["any"])
        group = file.tasks[0]
        resources = group.resources.model_copy(update={"cpu": 1500})
        return file.model_copy(update={"tasks": [group.model_copy(update={"resources": resources})]})

    def close(self) -> None:
        for name in list(self.buses):
            self.kill(name)
        self.loop.settle()
        self.processes.kill("")
        self.loop.settle()
        self.loop.close()
        self._undo.close()
        structlog.configure(**self._logging)

    def _unforeseen(self, loop: Any, context: dict[str, Any]) -> None:
        if "handle" in context:
            self.errors.append(str(context))

    def _logged(self, logger: object, method: str, event: MutableMapping[str, Any]) -> Any:
        self.errors.append(str(event))
        raise structlog.DropEvent

    # Time

    def now(self) -> datetime:
        return START + timedelta(seconds=self.loop.time())

    def flow(self, seconds: float) -> None:
        """Everything happens at its time; what must always hold is looked at all the while."""
        until = self.loop.time() + seconds
        while self.loop.time() < until:
            self.loop.flow(min(1.0, until - self.loop.time()))
            self.check()

    # Processes

    def world(self, region: str) -> World:
        world = self.books[region].world
        world.now, world.steady = self.now(), self.loop.time()
        return world

    def start(self, process: str) -> None:
        """Unless it runs."""
        if process in self.buses:
            return
        region, part = process.split("-")
        self._dying.discard(process)
        bus = UnrulyBus(self.brokers[region], self.post, process, self.loop)
        wire = UnrulyBus(self.wire, self.post, process, self.loop)
        self.buses[process] = [bus, wire]
        work = {"manager": self._manager, "federation": self._federation, "rest": self._rest}[part]
        self.processes.start(process, work(region, bus, wire))

    def kill(self, process: str) -> None:
        buses = self.buses.pop(process, None)
        if buses is None:
            return
        self.processes.kill(process)
        for bus in buses:
            self.loop.create_task(bus.kill(), context=NOBODY.copy())

    def start_later(self, process: str, seconds: float) -> None:
        self.loop.call_later(seconds, self.start, process, context=NOBODY.copy())

    async def _manager(self, region: str, bus: UnrulyBus, wire: UnrulyBus) -> None:
        name = f"{region}-manager"
        uow = MortalUnitOfWork(self.books[region].world.uow.engine, lambda: self._committed(name), nothing)
        database = Database(uow, Clock(self.now, self.loop.time))
        await bus.connect()
        await RegionRequests(bus, database, LiveQueue(bus, self.loop.time), QueueFile(), Measurements()).serve()
        await end_holds(database, Always())  # type: ignore[arg-type]

    async def _federation(self, region: str, bus: UnrulyBus, wire: UnrulyBus) -> None:
        block = IPv4Network(f"10.{64 + REGIONS.index(region)}.0.0/16")
        settings = FederationSettings(
            region=region, regions_file=Path("unused"), wire_creds=Path("unused"), address_block=block
        )
        trust = {"accept": ["default"], "tenants": {"default": "default"}}
        others = {
            other: {"token": f"a secret of {'-'.join(sorted((region, other)))} and of nobody else", **trust}
            for other in REGIONS
            if other != region
        }
        peers = PeersFile.model_validate({"peers": others}).peers
        await bus.connect()
        await wire.connect()
        await Federation(bus, wire, settings, peers, self.loop.time, lambda: self.now().timestamp()).run()

    async def _rest(self, region: str, bus: UnrulyBus, wire: UnrulyBus) -> None:
        """A scheduler, and agents."""
        await bus.connect()

        async def plan(message: Message) -> bytes:
            free = self.has_room(region)
            answer = PlanAnswer(feasible=free, version=0, solver="test", reason=None if free else NO_ROOM)
            return answer.model_copy(update={"metrics": {"composite": self.chance.random()}}).encode()

        await bus.serve(subjects.rpc("scheduler", "plan"), plan)
        looked = 0.0
        while True:
            due = any(at <= self.loop.time() for (where, _), at in self.running.items() if where == region)
            if region in self._news or due or self.loop.time() - looked >= AT_LEAST_EVERY_S:
                self._news.discard(region)
                looked = self.loop.time()
                self._place(region)
                self._work(region)
            await asyncio.sleep(LOOK_S)

    def has_room(self, region: str) -> bool:
        if region == HOME and (self.room_at_home is None or self.loop.time() < self.room_at_home):
            return False
        with self.books[region].world.uow.read() as tx:
            held = select(AllocationRow.id).where(AllocationRow.state.in_(("pending", "running", "stopping")))
            return tx.session.scalars(held.limit(1)).first() is None

    def _place(self, region: str) -> None:
        world = self.world(region)
        with world.uow.read() as tx:
            queued = [
                (row.id, row.attempt, row.waiting is None)
                for row in tx.session.scalars(select(JobRow).where(JobRow.state == JobState.QUEUED))
            ]
        for job, attempt, new in queued:
            if self.has_room(region) and world.commit(world.propose(job, NODES)) is None:
                self._news.add(region)
                continue
            if not new:
                continue
            refused = PlanRefused(job=job, attempt=attempt, version=0, reason=NO_ROOM)
            world.write(lambda tx, refused=refused: note_refusal(tx, refused))

    def _work(self, region: str) -> None:
        world = self.world(region)
        with world.uow.read() as tx:
            live = {row.id: row.state for row in tx.session.scalars(select(JobRow).where(JobRow.live))}
            ready = set(tx.session.scalars(select(GuestRow.job).where(GuestRow.ready.is_not(None))))
        for region_, job in [each for each in self.running if each[0] == region]:
            if live.get(job) not in STARTS_AGAIN:  # the region wants it no more
                del self.running[region_, job]
        for job, state in live.items():
            if state in PLACED and job not in ready:
                world.network(job)
                self._news.add(region)
            elif state in STARTS_AGAIN:
                self._run(region, job, state)
            elif state in JOB_OVER or state is JobState.RESCHEDULING:
                world.confirm(job)

    def _run(self, region: str, job: str, state: JobState) -> None:
        world, now = self.world(region), self.loop.time()
        self._news.add(region)
        if (region, job) not in self.running:
            self.running[region, job] = now + self.life_s
            self.ran.append(region)
        if state is JobState.STARTING:
            world.tell(job, "running")
        elif now >= self.running[region, job]:
            world.tell(job, "exited", exit_code=0)
            del self.running[region, job]

    # Steps

    def _step(self, process: str, way: str, subject: str) -> bool:
        """Whether the process dies before it says or hears this."""
        if process in self._dying:
            return False
        operation = self._operation(subject)
        if process.startswith(HOME) and operation not in QUIET and "rest" not in process:
            self._passed(process, f"{process} {way} {operation}")
        if way == "in":
            self._serving[process] = operation
        return process in self._dying

    def _operation(self, subject: str) -> str:
        said = _between(subject)
        if said is None:
            return subject.rpartition(".")[2]
        id_ = subjects.parse_between_regions(subject)[3]
        if said != "answer":
            self._questions[id_] = said
            return said
        asked = self._questions.get(id_, "")
        return asked if asked in QUIET else f"answer to {asked}"

    def _committed(self, process: str) -> None:
        self._news.add(process.partition("-")[0])
        if process.startswith(HOME):
            self._passed(process, f"{process} commits {self._serving.get(process, '')}")
        if process in self._dying:
            raise Killed

    def _passed(self, process: str, step: str) -> None:
        if step not in self.steps:
            self.steps.append(step)
        self.at_step(process, step)

    def die(self, process: str) -> None:
        """Of the step that it is about to take."""
        self._dying.add(process)
        self.kill(process)

    # Databases

    def restore(self, region: str, kept: sqlite3.Connection) -> None:
        """Put a region's database back to what it was, in a fresh epoch, while its manager is away."""
        books = self.books[region]
        self.kill(f"{region}-manager")
        self.loop.settle()
        books.put_back(kept)
        epoch = f"00000000-0000-0000-0000-{next(self._epochs):012}"
        with books.world.uow.engine.begin() as connection:
            connection.execute(update(ClusterRow).values(epoch=epoch))
        self.start(f"{region}-manager")

    # What must hold

    def guests(self, region: str) -> Iterator[tuple[GuestRow, JobRow]]:
        with self.books[region].world.uow.read() as tx:
            yield from tx.session.execute(select(GuestRow, JobRow).join(JobRow, JobRow.id == GuestRow.job))

    def away(self) -> AwayRow:
        with self.books[HOME].world.uow.read() as tx:
            return tx.session.get_one(AwayRow, self.job)

    def state(self) -> JobState:
        return self.books[HOME].world.job(self.job).state

    def check(self) -> None:
        """At any time: it was started in one place at most, nothing is held for too long, and nothing went wrong that
        is not foreseen."""
        assert self.errors == [], self.errors
        assert len(set(self.ran)) <= 1, self.ran
        for region in OWNERS:
            for guest, row in self.guests(region):
                if not guest.committed and row.state not in JOB_OVER:
                    age_s = HOLD_S - (guest.hold_until - self.now()).total_seconds()
                    assert age_s <= HOLD_ENDS_S or f"{region}-manager" not in self.buses, (region, age_s)

    def nothing_is_left(self) -> None:
        """All that was held is free again."""
        for region in REGIONS:
            with self.books[region].world.uow.read() as tx:
                live = tx.session.scalars(select(JobRow.name).where(JobRow.live)).all()
            assert not live, (region, live)
