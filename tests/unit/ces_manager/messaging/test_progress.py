"""Progress as the manager hears it: of the node's own tasks, of bounded length, and not too often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from history_actors import malleable
from manager_world import World, ring
from memory_bus import MemoryBroker, MemoryBus

from ces_common import subjects
from ces_common.messages.records import AllocationRecord
from ces_common.messages.reports import Progress
from ces_manager.broadcast import Broadcast
from ces_manager.database import Database
from ces_manager.measurements import Measurements
from ces_manager.messaging.handlers import Messaging
from ces_manager.messaging.progress_intake import LARGEST, UNKNOWN_BURST, WORKER_BURST
from ces_manager.speed_meter import READ_S

SOON = 60.0  # patience on a busy machine, not a wait
Passed = list[Progress]


@asynccontextmanager
async def listening(world: World) -> AsyncIterator[tuple[MemoryBus, Passed, Measurements]]:
    """The manager hears what is said on the bus, and measures; what passes to watchers is in the list."""
    bus, measurements, broadcast = MemoryBus(MemoryBroker()), Measurements(), Broadcast()
    database, passed = Database(world.uow, world.clock), Passed()

    async def watch() -> None:
        async for progress in broadcast.listen(SOON):
            if progress is not None:
                passed.append(progress)

    await bus.connect()
    watching = asyncio.create_task(watch())
    try:
        await Messaging(database, bus, world.timeouts, world.failure_detector, measurements, broadcast).start()
        yield bus, passed, measurements
    finally:
        watching.cancel()
        await bus.close()
        database.close()


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON):
        while not happened():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def line(place: AllocationRecord, job: str, **changes: object) -> Progress:
    return Progress.model_validate(
        {"node": place.node, "allocation": place.id, "job": job, "task": place.task, "data": {"round": 1}} | changes
    )


async def test_progress_in_anothers_name_reaches_nobody(world: World) -> None:
    """A node forges that of another job, of another node's task, and of what does not exist."""
    mine, other = world.submit(ring("mine", tasks=1)), world.submit(ring("other", tasks=1))
    world.run(mine, ["a"])
    world.run(other, ["b"])
    (own,), (foreign,) = world.job(mine).allocations, world.job(other).allocations
    async with listening(world) as (bus, passed, _):
        for forged in (
            line(own, other),
            line(own, mine, task="w-9"),
            line(foreign, other, node="a"),
            line(foreign, other),
            line(own, other, allocation="01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            line(own, mine, allocation="zero\0"),
            line(own, mine, data={"x": "y" * LARGEST}),
        ):
            await bus.publish(subjects.report("a", "progress"), forged.encode())
        await bus.publish(subjects.report("a", "progress"), b"rubbish")
        await bus.publish(subjects.report("b", "progress"), line(foreign, other).encode())
        await bus.publish(subjects.report("a", "progress"), line(own, mine).encode())
        await until(lambda: any(each.job == mine for each in passed))
        assert passed == [line(foreign, other), line(own, mine)]
        world.cancel(mine)
        world.confirm(mine)
        await bus.publish(subjects.report("a", "progress"), line(own, mine, data={"round": 2}).encode())
        await until(lambda: len(passed) == 3)  # the last line may come behind the word of the end


async def test_one_worker_crowds_out_no_other(world: World) -> None:
    job = world.submit(ring(tasks=2))
    world.run(job, ["a", "b"])
    loud, quiet = world.job(job).allocations
    async with listening(world) as (bus, passed, _):
        for count in range(10 * WORKER_BURST):
            await bus.publish(subjects.report("a", "progress"), line(loud, job, data={"round": count}).encode())
        await bus.publish(subjects.report("b", "progress"), line(quiet, job).encode())
        await until(lambda: any(each.allocation == quiet.id for each in passed))
        assert len(passed) <= WORKER_BURST + 1


async def test_a_node_that_invents_allocations_has_few_of_them_looked_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = world.submit(ring(tasks=1))
    world.run(job, ["b"])
    (real,) = world.job(job).allocations
    looks = 0
    async with listening(world) as (bus, passed, _):
        read = world.uow.read

        def counted() -> object:
            nonlocal looks
            looks += 1
            return read()

        monkeypatch.setattr(world.uow, "read", counted)
        for number in range(2 * UNKNOWN_BURST):
            invented = line(real, job, node="a", allocation=f"x{number}")
            await bus.publish(subjects.report("a", "progress"), invented.encode())
        for _ in range(5):
            await bus.publish(subjects.report("b", "progress"), line(real, job).encode())
        await until(lambda: len(passed) == 5)
        assert looks <= UNKNOWN_BURST + 1, "and what is known is looked up once"
        monkeypatch.undo()


async def test_only_the_first_task_of_a_malleable_job_tells_how_fast_it_is(world: World) -> None:
    job, rigid = world.submit(malleable(low=2)), world.submit(ring("rigid", tasks=1))
    world.run(job, ["a", "b"])
    world.run(rigid, ["c"])
    first, second = world.job(job).allocations
    (other,) = world.job(rigid).allocations
    async with listening(world) as (bus, passed, measurements):
        for step in range(2):
            for place, of in ((second, job), (other, rigid), (first, job)):
                said = line(place, of, incarnation=1, seen_s=float(step), data={"step": step})
                await bus.publish(subjects.report(place.node, "progress"), said.encode())
        forged = line(first, job, node="c", incarnation=1, seen_s=9.0, data={"step": 99})
        await bus.publish(subjects.report("c", "progress"), forged.encode())
        await until(lambda: len(passed) == 6)
        (found,) = measurements.speeds.due(world.steady + READ_S)
        assert (found.allocation, found.step) == (first.id, 1)
