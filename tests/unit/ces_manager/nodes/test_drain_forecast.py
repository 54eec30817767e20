"""What a drain would hit, before it is done."""

from __future__ import annotations

import pytest
from manager_world import World, ring
from memory_bus import MemoryBroker, MemoryBus
from moved_tasks import apart, ask, gone, laid, place

from ces_common import subjects
from ces_common.messages.queries import DrainAnswer
from ces_manager.errors import NotFound
from ces_manager.measurements import Measurements
from ces_manager.nodes import operations
from ces_manager.nodes.drain_forecast import UNTOLD, hit_by_drain, with_places
from ces_manager.nodes.node_views import node_view
from ces_manager.nodes.rows import tasks_on

NODES = ["a", "b", "c", "d"]


def forecast(world: World, node: str):
    with world.uow.read() as tx:
        return hit_by_drain(tx, node)


async def answering(answer: bytes | None) -> MemoryBus:
    """A bus on which the scheduler says this; None: on which there is none."""
    bus = MemoryBus(MemoryBroker())
    await bus.connect()

    async def say(_: object) -> bytes:
        assert answer is not None
        return answer

    if answer is not None:
        await bus.serve(subjects.rpc("scheduler", "drain"), say)
    return bus


async def test_the_jobs_on_the_node_are_told_with_their_workers_there_and_nothing_changes(world: World) -> None:
    ring_job = world.submit(ring())
    world.wait(0.001)  # jobs are told in the order of their ids
    single = world.submit(ring("single", tasks=1))
    world.run(ring_job, NODES)
    world.run(single, ["b"])
    told = forecast(world, "b")
    assert (told.node, told.cordoned, told.remark) == ("b", False, None)
    assert [(job.id, len(job.workers), job.state, job.elsewhere) for job in told.jobs] == [
        (ring_job, 1, "running", None), (single, 1, "running", None)
    ]  # fmt: skip
    assert [job.name for job in forecast(world, "a").jobs] == [told.jobs[0].name]
    reasons = {single: "no room"}
    placed = await with_places(
        await answering(DrainAnswer(version=1, places=[ring_job], reasons=reasons).encode()), told
    )
    assert [(job.elsewhere, job.reason) for job in placed.jobs] == [(True, None), (False, "no room")]
    assert placed.remark is None
    assert world.job(ring_job).state == world.job(single).state == "running"


@pytest.mark.parametrize("answer", [None, b"half an ans", DrainAnswer(version=1).encode()])
async def test_what_the_scheduler_does_not_say_is_not_made_up(world: World, answer: bytes | None) -> None:
    world.run(world.submit(ring()), NODES)
    told = await with_places(await answering(answer), forecast(world, "a"))
    assert [job.elsewhere for job in told.jobs] == [None]
    assert told.remark in (UNTOLD, "nobody says of 1 jobs whether there are other places")


async def test_a_node_without_jobs_asks_nobody(world: World) -> None:
    world.write(lambda tx: operations.cordon(tx, "a"))
    told = forecast(world, "a")
    assert (told.cordoned, told.jobs) == (True, [])
    assert await with_places(await answering(None), told) == told
    with pytest.raises(NotFound):
        forecast(world, "nobody")


def test_a_task_on_its_way_is_told_once_and_where_it_goes_no_job_is_hit(world: World) -> None:
    job = world.submit(apart())
    world.run(job, ["a", "b"])
    old = place(world, job, "w-0")

    def told(node: str) -> tuple[list[str], list[str], list[str]]:
        with world.uow.read() as tx:
            view = node_view(tx, node, Measurements())
            workers = [worker for each in hit_by_drain(tx, node).jobs for worker in each.workers]
            return view.allocations, list(tasks_on(tx, node)), workers

    name = ["apart/w-0"]
    ask(world, job, "w-0", "c")
    assert (told("a"), told("c")) == ((name, name, ["w-0"]), (name, name, []))
    laid(world, job)
    gone(world, old)
    assert (told("a"), told("c")) == ((name, name, []), (name, name, ["w-0"]))
