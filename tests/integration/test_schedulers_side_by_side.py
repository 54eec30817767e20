"""Two schedulers at work on one cluster: each hears what becomes of its proposals, and one set of victims leaves for a
job. The manager's transactions are the real ones; the test says when the manager takes up what was proposed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from manager_world import BY_TEN, World, full_mesh, ring, sqlite_url
from memory_bus import MemoryBroker, MemoryBus
from nats_identities import SOON, Enter
from queue_looks import placing
from scheduler_steps import Clock, scheduler_on

from ces_common import subjects
from ces_common.bus.port import Bus, Delivery, Message
from ces_common.db.outbox import mark_published, unpublished_events
from ces_common.jobfile import JobFile
from ces_common.messages.events import parse_event
from ces_common.messages.plans import PlanProposed, PlanRejected, PreemptionProposed
from ces_common.messages.records import SnapshotQuery
from ces_common.states import JobState
from ces_core.queue.parameters import Parameters
from ces_manager.jobs import commands
from ces_manager.plans.commit import commit_plan
from ces_manager.plans.preemption import commit_preemption
from ces_scheduler.service import EVENTS

JOBS = 8
PROPOSALS = [subjects.events("plan", "proposed"), subjects.events("preemption", "proposed")]


class ManagerDesk:
    """The manager on the bus. What is proposed waits until ``answer`` is called."""

    def __init__(self, world: World, bus: Bus) -> None:
        self.world, self.bus = world, bus
        self.waiting: list[PlanProposed | PreemptionProposed] = []
        self._news = asyncio.Event()

    async def open(self) -> None:
        await self.bus.serve(subjects.rpc("manager", "snapshot"), self._snapshot)
        await self.bus.consume("manager", PROPOSALS, self._heard)

    async def _snapshot(self, message: Message) -> bytes:
        return self.world.snapshot(SnapshotQuery.model_validate_json(message.data)).encode()

    async def _heard(self, delivery: Delivery) -> None:
        self.waiting.append(parse_event(delivery.data).data)
        self._news.set()

    async def proposals(self, count: int) -> None:
        """Until this many wait."""
        async with asyncio.timeout(SOON):
            while len(self.waiting) < count:
                self._news.clear()
                await self._news.wait()

    async def answer(self) -> list[str | None]:
        """Take up what waits, in order, and publish what came of it; why each was rejected, if it was."""
        taken, self.waiting = self.waiting, []
        answers = [self._take(each) for each in taken]
        with self.world.uow.read() as tx:
            events = unpublished_events(tx, 10**5)
        for event in events:
            await self.bus.publish_fact(event.bus_subject, event.body.encode(), message_id=event.id)
        with self.world.uow.bare_write() as session:
            mark_published(session, [event.sequence for event in events])
        return answers

    def _take(self, proposal: PlanProposed | PreemptionProposed) -> str | None:
        if isinstance(proposal, PlanProposed):
            return self.world.write(lambda tx: commit_plan(tx, proposal))
        return self.world.write(lambda tx: commit_preemption(tx, proposal, BY_TEN))


class Seat:
    """One scheduler, stepped by the test: the plans that it proposed, and the rejections that it heard."""

    def __init__(self, bus: Bus, parameters: Parameters | None = None) -> None:
        self._scheduler = scheduler_on(bus, Clock(), placing(parameters=parameters))
        self.plans: set[str] = set()
        self._rejections: set[str] = set()
        self._news = asyncio.Event()

    async def open(self) -> None:
        await self._scheduler.reader.start(EVENTS, self._event)

    async def close(self) -> None:
        await self._scheduler.reader.close()

    def _event(self, message: Message) -> None:
        data = parse_event(message.data).data
        if isinstance(data, PlanRejected):
            self._rejections.add(data.plan)
        self._scheduler._event(message)
        self._news.set()

    async def step(self) -> None:
        await self._scheduler.step()
        self.plans |= {each.plan for each in self._scheduler._proposals._in_flight.values()}

    async def hears(self, rejected: set[str]) -> None:
        """Until these rejections have come."""
        async with asyncio.timeout(SOON):
            while not rejected <= self._rejections:
                self._news.clear()
                await self._news.wait()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(sqlite_url(tmp_path))
    yield made
    made.close()


async def test_every_proposal_is_answered_where_it_was_made(world: World, enter: Enter) -> None:
    world.add_nodes("a", "b", cpu=10**5, memory=2**40)
    world.put_topology(full_mesh(["a", "b"], "10Gbit"))
    jobs = [world.submit(ring(f"job-{i}", tasks=2)) for i in range(JOBS)]
    desk = ManagerDesk(world, await enter("manager"))
    await desk.open()
    first, second = seats = [Seat(await enter("scheduler")) for _ in range(2)]
    for seat in seats:
        await seat.open()
        await seat.step()
    assert len(first.plans) == len(second.plans) == JOBS
    await desk.proposals(2 * JOBS)
    desk.waiting.sort(key=lambda plan: (plan.job, (plan.plan in first.plans) is (jobs.index(plan.job) % 2 == 0)))
    taken = list(desk.waiting)
    rejected = {plan.plan for plan, reason in zip(taken, await desk.answer(), strict=True) if reason is not None}
    assert [len(rejected & seat.plans) for seat in seats] == [JOBS // 2] * 2
    for seat in seats:
        await seat.hears(rejected & seat.plans)
        await seat.close()


@pytest.fixture
async def desk(world: World) -> AsyncIterator[ManagerDesk]:
    """Of three nodes without links, over a bus in memory."""
    world.add_nodes("a", "b", "c", cpu=1000)
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    desk = ManagerDesk(world, bus)
    await desk.open()
    yield desk
    await bus.close()


async def settled() -> None:
    """Until nothing is under way on the bus in memory."""
    for _ in range(100):
        await asyncio.sleep(0)


def filling(name: str, **fields: object) -> JobFile:
    """One task that takes a node's CPU for itself."""
    group = {"name": "w", "command": ["true"], "resources": {"cpu": "1", "memory": "128Mi"}}
    return JobFile.model_validate({"name": name, "tasks": [group], **fields})


class Rivals:
    """Jobs ``one`` and ``two`` run beside ``third``. Each of two schedulers would have another of them make room for
    the job ``urgent``; ``one`` was told to."""

    def __init__(self, desk: ManagerDesk, how: str) -> None:
        self.desk, self.world = desk, desk.world
        self.one, self.two = (self.world.submit(filling(name, priority=10, preemption=how)) for name in ("one", "two"))
        self.third = self.world.submit(filling("third", priority=95))
        self.urgent = self.world.submit(filling("urgent", priority=90))

    async def choose(self, parameters: Parameters) -> Seat:
        """Returns the scheduler whose proposal was rejected."""
        for job, place in ((self.one, "a"), (self.two, "b"), (self.third, "c")):
            self.world.run(job, [place])
            self.world.wait(1)
        first, second = seats = [Seat(self.desk.bus, parameters) for _ in range(2)]
        for seat in seats:
            await seat.open()
        await second.step()
        self.world.write(lambda tx: commands.pause_job(tx, self.two))
        await first.step()
        self.world.write(lambda tx: commands.resume_job(tx, self.two))
        assert await self.proposed() == [[self.two], [self.one]]
        assert [reason is None for reason in await self.desk.answer()] == [False, True]
        await settled()
        return second

    async def proposed(self) -> list[list[str]]:
        """Whom the proposals that wait would have make room; none where a plan is proposed."""
        await settled()
        return [
            [victim.job for victim in each.victims] if isinstance(each, PreemptionProposed) else []
            for each in self.desk.waiting
        ]

    def state(self, job: str) -> JobState:
        return self.world.job(job).state


async def test_no_second_set_of_victims_is_told_to_go_while_the_first_is_on_its_way(desk: ManagerDesk) -> None:
    rivals = Rivals(desk, "stop")
    second = await rivals.choose(Parameters(preemption=10))
    assert rivals.state(rivals.one) is JobState.RESCHEDULING
    await second.step()
    await settled()
    rivals.world.confirm(rivals.one)
    await desk.answer()
    assert rivals.state(rivals.two) is JobState.RUNNING
    await second.step()
    assert await rivals.proposed() == [[]]
    await desk.answer()
    assert rivals.state(rivals.urgent) is JobState.PLANNED


async def test_a_scheduler_that_is_busy_with_other_jobs_sends_nobody_away_for_room_that_was_made(
    desk: ManagerDesk,
) -> None:
    rivals = Rivals(desk, "suspend")
    second = await rivals.choose(Parameters(preemption=10, starts=1))
    assert rivals.state(rivals.one) is JobState.SUSPENDED
    rivals.world.cancel(rivals.third)
    rivals.world.confirm(rivals.third)
    rivals.world.submit(filling("more-urgent", priority=100))
    for _ in range(2):
        await second.step()
        assert await rivals.proposed() == [[]], "one plan at a time, and no victims"
        await desk.answer()
    assert rivals.state(rivals.two) is JobState.RUNNING
    assert rivals.state(rivals.urgent) is JobState.PLANNED
