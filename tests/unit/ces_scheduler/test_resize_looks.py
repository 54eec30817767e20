"""When running jobs are looked at again for another size: while jobs start or end, and once a proposal is answered."""

from __future__ import annotations

from bus_manager import FakeManager
from cluster_state import node
from malleable_records import LINKS, NAMES, malleable, places
from memory_bus import MemoryBus
from scheduler_steps import Clock, step

from ces_common.messages.plans import ResizeRejected
from ces_common.messages.records import JobRecord
from ces_common.states import AllocationState, JobState
from ces_scheduler.resizes import ENDS_S, STARTS_S
from ces_scheduler.service import Scheduler


async def test_a_job_that_starts_is_looked_at_again_soon_and_grows_once_it_runs(
    compiled: None, bus: MemoryBus, manager: FakeManager, scheduler: Scheduler
) -> None:
    """That a job runs is an event that no scheduler hears: there is one for each job, and most have a fixed size."""
    manager.change(nodes=places(), links=LINKS, jobs=[malleable("m", ["a", "b"], state=JobState.STARTING)])
    for _ in range(2):
        assert await step(scheduler, manager) <= STARTS_S
    assert not manager.told("resize.proposed")
    manager.change(jobs=[malleable("m", ["a", "b"])])
    await step(scheduler, manager)
    (found,) = manager.told("resize.proposed")
    assert found.size == 8


def ending(name: str, on: list[str]) -> JobRecord:
    """A rigid job with one worker on each of these nodes; the first worker has ended."""
    record = malleable(name, on, high=len(on))
    first = record.allocations[0].model_copy(update={"state": AllocationState.SUCCEEDED})
    return record.model_copy(update={"size": None, "allocations": [first, *record.allocations[1:]]})


async def test_a_job_grows_once_into_the_room_of_one_whose_tasks_end_one_after_the_other(
    compiled: None, bus: MemoryBus, manager: FakeManager, scheduler: Scheduler, clock: Clock
) -> None:
    other = ending("r", ["b", "c", "d", "d"])
    manager.change(nodes=places(), links=LINKS, jobs=[malleable("m", ["a"]), other])
    assert 0 < await step(scheduler, manager) <= ENDS_S
    assert not manager.told("resize.proposed"), "its last tasks will have ended in a moment"
    manager.change(jobs=[other.model_copy(update={"state": JobState.SUCCEEDED, "allocations": []})])
    await step(scheduler, manager)
    (found,) = manager.told("resize.proposed")
    assert found.size == 8


async def test_room_is_not_left_idle_for_a_job_whose_other_tasks_go_on(
    compiled: None, bus: MemoryBus, manager: FakeManager, scheduler: Scheduler, clock: Clock
) -> None:
    manager.change(nodes=places(), links=LINKS, jobs=[malleable("m", ["a"]), ending("r", ["b", "c", "d", "d"])])
    clock.now += await step(scheduler, manager)
    await step(scheduler, manager)
    (found,) = manager.told("resize.proposed")
    assert found.size == 5


async def test_one_that_starts_is_looked_at_soon_beside_one_that_runs(
    compiled: None, bus: MemoryBus, manager: FakeManager, scheduler: Scheduler
) -> None:
    jobs = [malleable("full", NAMES, high=4), malleable("m", ["a"], high=1, state=JobState.STARTING)]
    manager.change(nodes=places(), links=LINKS, jobs=jobs)
    for _ in range(2):
        assert await step(scheduler, manager) <= STARTS_S


async def test_a_proposal_is_repeated_when_its_answer_is_lost_and_later_when_it_is_no(
    compiled: None, bus: MemoryBus, manager: FakeManager, scheduler: Scheduler, clock: Clock
) -> None:
    manager.change(nodes=places(), links=LINKS, jobs=[malleable("m", ["a", "b"])])
    for _ in range(2):
        await step(scheduler, manager)
    (first,) = manager.told("resize.proposed")
    clock.now += 6
    await step(scheduler, manager)
    _, second = manager.told("resize.proposed")
    for proposal in (first, second):
        no = ResizeRejected(resize=proposal.resize, job="m", attempt=1, reason="it is full")
        await manager.tell("resize", "rejected", "m", no)
    await manager.settled()
    await step(scheduler, manager)
    assert len(manager.told("resize.proposed")) == 2, "what the manager refuses is left alone for a while"
    clock.now += 60
    await step(scheduler, manager)
    _, _, third = manager.told("resize.proposed")
    changed = ResizeRejected(resize=third.resize, job="m", attempt=1, reason="it has changed", stale=True)
    await manager.tell("resize", "rejected", "m", changed)
    await manager.settled()
    manager.change(nodes=[node("e", 9, cpu=0)])
    await step(scheduler, manager)
    assert len(manager.told("resize.proposed")) == 4, "a job that has changed is looked at again at once"
