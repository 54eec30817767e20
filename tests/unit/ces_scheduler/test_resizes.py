"""Sizes that the scheduler proposes: larger where room is idle, smaller where a job waits, balanced between jobs."""

from __future__ import annotations

import pytest
from bus_manager import FakeManager
from cluster_state import node
from malleable_records import LINKS, NAMES, malleable, places, rigid
from memory_bus import MemoryBus
from queue_looks import placing
from scheduler_steps import Clock, scheduler_on, step

from ces_common.messages.plans import ResizeProposed, ResizeRejected
from ces_common.messages.records import JobRecord, Resizing
from ces_common.states import JobState
from ces_core.queue.parameters import Parameters, Tenant
from ces_core.registry import DEFAULT, get_solver
from ces_core.warm_up import warm_up
from ces_scheduler.cycle_run import Placing
from ces_scheduler.service import Scheduler


@pytest.fixture(autouse=True, scope="module")
def _warm() -> None:
    """A first call may compile, which takes more time than a look may."""
    warm_up(get_solver(DEFAULT))


async def proposed(
    bus: MemoryBus, *jobs: JobRecord, cpu: int = 2000, how: Placing | None = None
) -> list[ResizeProposed]:
    """What is proposed in a first look at these jobs."""
    manager = FakeManager(bus)
    await manager.open()
    manager.change(nodes=places(), links=LINKS, jobs=list(jobs))
    scheduler = scheduler_on(bus, Clock(), how)
    await step(scheduler, manager)
    found: list[ResizeProposed] = manager.told("resize.proposed")
    await scheduler.reader.close()
    return found


async def test_a_job_grows_into_what_is_idle(bus: MemoryBus) -> None:
    (found,) = await proposed(bus, malleable("m", ["a", "b"]))
    assert (found.job, found.attempt, found.size) == ("m", 1, 8)
    assert found.assignments["w-0"] == "a", "its first task keeps its node"
    assert sorted(found.assignments.values()) == sorted(NAMES * 2)


async def test_a_job_shrinks_by_as_little_as_a_waiting_one_needs(bus: MemoryBus) -> None:
    (found,) = await proposed(bus, malleable("m", NAMES * 2), rigid("r", 5))
    assert (found.job, found.size) == ("m", 3)
    assert found.assignments["w-0"] == "a"


async def test_no_job_shrinks_for_a_less_urgent_one(bus: MemoryBus) -> None:
    assert await proposed(bus, malleable("m", NAMES * 2), rigid("r", 5).model_copy(update={"priority": 49})) == []


async def test_one_job_at_a_time_makes_room(bus: MemoryBus) -> None:
    """What the first gives back is not seen before it has gone."""
    leaving = malleable("one", NAMES, state=JobState.RESIZING)
    smaller = malleable("one", ["a"])
    coming = Resizing(size=1, tasks=smaller.tasks, allocations=smaller.allocations)
    leaving = leaving.model_copy(update={"resizing": coming})
    assert await proposed(bus, leaving, malleable("two", NAMES), rigid("r", 2)) == []


async def test_neither_growth_nor_a_start_goes_beyond_a_quota(bus: MemoryBus) -> None:
    (found,) = await proposed(bus, malleable("m", ["a", "b"], tenant="t"), how=half_of_it())
    assert found.size == 4


def half_of_it() -> Placing:
    """Tenant t has a quota of half of the eight cores."""
    return placing(parameters=Parameters(tenants=(Tenant("t", quota={"cpu": 0.5}), Tenant("default"))))


async def test_who_waits_for_a_quota_makes_no_job_smaller_and_keeps_none_small(bus: MemoryBus) -> None:
    over = rigid("r", 5).model_copy(update={"tenant": "t"})
    (found,) = await proposed(bus, malleable("m", ["a", "b"]), over, how=half_of_it())
    assert (found.job, found.size) == ("m", 8)


async def test_a_suspended_job_goes_on_as_it_was(bus: MemoryBus) -> None:
    manager = FakeManager(bus)
    await manager.open()
    suspended = malleable("m", ["a", "b"], state=JobState.SUSPENDED, ran_s=60.0)
    manager.change(nodes=places(), links=LINKS, jobs=[suspended])
    scheduler = scheduler_on(bus, Clock())
    await step(scheduler, manager)
    (plan,) = manager.told("plan.proposed")
    assert (plan.size, plan.assignments) == (None, {"w-0": "a", "w-1": "b"})
    await scheduler.reader.close()


@pytest.mark.parametrize(("cordoned", "node"), [(False, "c"), (True, None)])
async def test_a_job_that_waits_again_begins_where_its_checkpoints_are(
    bus: MemoryBus, cordoned: bool, node: str | None
) -> None:
    manager = FakeManager(bus)
    await manager.open()
    there = [each.model_copy(update={"cordoned": cordoned and each.name == "c"}) for each in places()]
    manager.change(nodes=there, links=LINKS, jobs=[malleable("m", [], checkpoint_node="c")])
    scheduler = scheduler_on(bus, Clock())
    await step(scheduler, manager)
    (plan,) = manager.told("plan.proposed")
    assert (plan.assignments["w-0"] == "c") is (node == "c")
    await scheduler.reader.close()


async def test_the_larger_of_two_gives_workers_to_the_smaller(bus: MemoryBus) -> None:
    (found,) = await proposed(bus, malleable("large", [*NAMES, "a", "b", "c"]), malleable("small", ["d"]))
    assert (found.job, found.size) == ("large", 4)


async def test_what_is_balanced_stays(bus: MemoryBus) -> None:
    assert await proposed(bus, malleable("one", NAMES), malleable("two", NAMES)) == []


@pytest.mark.parametrize(("ran_s", "resize_s"), [(59.0, None), (100.0, 80.0)])
async def test_a_job_is_left_alone_until_it_pays(bus: MemoryBus, ran_s: float, resize_s: float | None) -> None:
    """For a minute; and until what it is expected to save is twice what its last resize took."""
    assert await proposed(bus, malleable("m", ["a", "b"], ran_s=ran_s, resize_s=resize_s)) == []


async def test_no_job_grows_while_another_waits_that_it_cannot_help(bus: MemoryBus) -> None:
    assert await proposed(bus, malleable("m", ["a", "b"]), rigid("r", 8)) == []


async def test_one_that_can_never_run_hinders_nobody(bus: MemoryBus) -> None:
    (found,) = await proposed(bus, malleable("m", ["a", "b"]), rigid("r", 1, cpu=64_000))
    assert found.size == 8


async def test_a_job_starts_as_large_as_there_is_room(bus: MemoryBus) -> None:
    manager = FakeManager(bus)
    await manager.open()
    manager.change(nodes=places(), links=LINKS, jobs=[malleable("m", [], high=6)])
    scheduler = scheduler_on(bus, Clock())
    await step(scheduler, manager)
    (plan,) = manager.told("plan.proposed")
    assert (plan.size, len(plan.assignments), len(plan.flows)) == (6, 6, 6)
    await scheduler.reader.close()


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
