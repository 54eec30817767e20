"""Sizes that the scheduler proposes: larger where room is idle, smaller where a job waits, balanced between jobs."""

from __future__ import annotations

from typing import Any

import pytest
from bus_manager import FakeManager
from malleable_records import LINKS, NAMES, malleable, places, rigid, speeds
from memory_bus import MemoryBus
from queue_looks import placing
from scheduler_steps import Clock, scheduler_on, step

from ces_common import subjects
from ces_common.messages.events import TopologyChanged
from ces_common.messages.plans import ResizeProposed, ResizeRejected
from ces_common.messages.records import JobRecord, Resizing
from ces_common.messages.speeds import SpeedAnswer, SpeedQuery
from ces_common.states import JobState
from ces_core.queue.parameters import Parameters, Tenant
from ces_core.registry import DEFAULT, get_solver
from ces_core.warm_up import warm_up
from ces_scheduler.cycle_run import Placing
from ces_scheduler.service import Scheduler
from ces_scheduler.sizing import COST_S, in_hand_s


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


async def test_a_job_shrinks_once_for_all_that_wait(bus: MemoryBus) -> None:
    less_urgent = rigid("low", 1).model_copy(update={"priority": 49})
    waiting = [rigid("r1", 2), malleable("r2", []), rigid("r3", 20), rigid("r4", 2), less_urgent]
    (found,) = await proposed(bus, malleable("m", NAMES * 2), *waiting)
    assert (found.job, found.size) == ("m", 3)


async def test_a_job_shrinks_for_no_more_of_those_that_wait_than_their_quota_allows(bus: MemoryBus) -> None:
    waiting = [rigid(name, 3).model_copy(update={"tenant": "t"}) for name in ("r1", "r2")]
    (found,) = await proposed(bus, malleable("m", NAMES * 2), *waiting, how=half_of_it())
    assert (found.job, found.size) == ("m", 5)


async def test_no_job_shrinks_for_a_less_urgent_one(bus: MemoryBus) -> None:
    assert await proposed(bus, malleable("m", NAMES * 2), rigid("r", 5).model_copy(update={"priority": 49})) == []


async def test_one_job_at_a_time_makes_room(bus: MemoryBus) -> None:
    """What the first gives back is not seen before it has gone."""
    leaving = malleable("one", NAMES, state=JobState.RESIZING)
    smaller = malleable("one", ["a"])
    coming = Resizing(size=1, tasks=smaller.tasks, allocations=smaller.allocations)
    leaving = leaving.model_copy(update={"resizing": coming})
    assert await proposed(bus, leaving, malleable("two", NAMES), rigid("r", 2)) == []


async def test_jobs_grow_side_by_side(bus: MemoryBus) -> None:
    """What the first is to have is held for it from its commitment on, so nothing is given twice."""
    growing = malleable("one", ["a"], state=JobState.RESIZING)
    larger = malleable("one", ["a", "a", "b", "b"])
    coming = Resizing(size=4, tasks=larger.tasks, allocations=larger.allocations)
    (found,) = await proposed(bus, growing.model_copy(update={"resizing": coming}), malleable("two", ["c"]))
    assert (found.job, found.size) == ("two", 4)
    assert set(found.assignments.values()) == {"c", "d"}


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


COPY = {
    "attempt": 1,
    "incarnation": 1,
    "name": "s",
    "size": 9,
    "digest": "0" * 64,
    "nodes": ["d"],
    "at": Clock().time(),
}


@pytest.mark.parametrize(
    ("known", "full", "expected"),
    [
        ({}, [], "c"),
        ({"stored": [COPY]}, [], "c"),
        ({"stored": [COPY]}, ["c"], "d"),
        ({"stored": [COPY]}, ["c", "d"], "a"),
        ({}, ["c"], "a"),
        ({"restoring": True, "former": "b", "stored": [COPY]}, [], "b"),
        ({"restoring": True, "stored": [COPY]}, [], "d"),
    ],
)
async def test_it_begins_elsewhere_where_there_is_no_room_and_best_where_a_copy_is(
    bus: MemoryBus, known: dict[str, Any], full: list[str], expected: str
) -> None:
    """It was on c last. Rigid jobs fill the others as far as told; each node has room for two workers."""
    manager = FakeManager(bus)
    await manager.open()
    jobs = [malleable("m", [], checkpoint_node="c", checkpoints=known)]
    jobs += [malleable(f"full-{name}", [name, name], spec=None, size=None) for name in full]
    jobs += [malleable("a-little", [name for name in "bcd" if name not in full], spec=None, size=None)]
    manager.change(nodes=places(), links=LINKS, jobs=jobs)
    scheduler = scheduler_on(bus, Clock())
    await step(scheduler, manager)
    (plan,) = manager.told("plan.proposed")
    assert plan.assignments["w-0"] == expected
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


@pytest.mark.parametrize("load_s", [None, 30.0])
async def test_what_a_resize_takes_goes_on_to_the_first_step(bus: MemoryBus, load_s: float | None) -> None:
    """By going from two to eight workers it saves 75 s of 100, and by twice 10 + 30 s it would win nothing."""
    told = speeds(LINEAR, 1000 - 1000).model_copy(update={"load_s": load_s})
    job = malleable("m", ["a", "b"], speed={"total": 1000}, speeds=told, resize_s=10.0)
    assert [each.size for each in await proposed(bus, job)] == ([8] if load_s is None else [])


@pytest.mark.parametrize(("left", "shrinks"), [(19 * 40, False), (21 * 40, True)])
async def test_a_job_that_is_soon_over_does_not_shrink_for_one_that_can_wait(
    bus: MemoryBus, left: int, shrinks: bool
) -> None:
    """A resize takes it 10 s, and it does 40 steps in each second."""
    told = {"speed": {"total": 1_000_000}, "speeds": speeds(LINEAR, 1_000_000 - left), "resize_s": 10.0}
    found = await proposed(bus, malleable("m", NAMES * 2, **told), rigid("r", 5))
    assert [each.size for each in found] == ([3] if shrinks else [])


def test_no_more_is_kept_in_hand_before_deadlines_than_a_resize_usually_takes() -> None:
    told = [malleable(f"m{i}", ["a"], resize_s=taken) for i, taken in enumerate((3.0, 900.0, 900.0))]
    assert (in_hand_s(told), in_hand_s(told[:1]), in_hand_s([])) == (COST_S, 3.0, COST_S)


FLAT = {1: 5.0, 2: 5.0, 4: 5.0, 8: 5.0}
LINEAR = {1: 5.0, 2: 10.0, 4: 20.0, 8: 40.0}


@pytest.mark.parametrize("told", [{"speed": {"hint": FLAT}}, {"speeds": speeds(FLAT)}])
async def test_a_job_that_workers_do_not_make_faster_neither_grows_nor_starts_large(
    bus: MemoryBus, told: dict[str, Any]
) -> None:
    manager = FakeManager(bus)
    await manager.open()
    jobs = [malleable("runs", ["a", "b"], **told), malleable("waits", [], **told)]
    manager.change(nodes=places(), links=LINKS, jobs=jobs)
    scheduler = scheduler_on(bus, Clock())
    await step(scheduler, manager)
    (plan,) = manager.told("plan.proposed")
    assert (plan.job, plan.size) == ("waits", 1)
    await scheduler.reader.close()
    assert await proposed(bus, jobs[0]) == []


async def test_a_job_grows_to_where_it_is_fastest(bus: MemoryBus) -> None:
    peak = {1: 5.0, 2: 9.0, 4: 12.0, 6: 11.0, 8: 9.0}
    (found,) = await proposed(bus, malleable("m", ["a", "b"], speeds=speeds(peak)))
    assert 3 <= found.size <= 5


@pytest.mark.parametrize(("left", "grows"), [(10 * 60, False), (10 * 600, True)])
async def test_a_job_grows_if_there_is_enough_left_to_do(bus: MemoryBus, left: int, grows: bool) -> None:
    """Ten steps/s with two workers: with eight it saves three quarters of a minute, or of ten."""
    told = {"speed": {"total": 1_000_000}, "speeds": speeds(LINEAR, 1_000_000 - left), "resize_s": 30.0}
    assert bool(await proposed(bus, malleable("m", ["a", "b"], **told))) is grows


async def test_who_gains_more_grows_first(bus: MemoryBus) -> None:
    """The larger of two, if the smaller one gains little."""
    some = {1: 5.0, 2: 6.0, 4: 7.0}
    small, large = malleable("small", ["a"], speeds=speeds(some)), malleable("large", ["b", "c"], speeds=speeds(LINEAR))
    (found,) = await proposed(bus, small, large)
    assert found.job == "large"


async def test_a_job_gives_what_makes_it_no_faster_to_one_that_it_makes_faster(bus: MemoryBus) -> None:
    flat = malleable("flat", ["a", "b", "c"], speeds=speeds(FLAT))
    gains = malleable("gains", ["a", "b", "c", "d", "d"], speeds=speeds(LINEAR))
    (found,) = await proposed(bus, flat, gains)
    assert (found.job, found.size) == ("flat", 1)


async def test_what_was_given_is_not_taken_back_within_five_minutes(
    compiled: None, bus: MemoryBus, manager: FakeManager, scheduler: Scheduler, clock: Clock
) -> None:
    """Though who was to have it has ended meanwhile."""
    large = malleable("large", [*NAMES, "a", "b", "c"])
    manager.change(nodes=places(), links=LINKS, jobs=[large, malleable("small", ["d"])])
    await step(scheduler, manager)
    (given,) = manager.told("resize.proposed")
    assert (given.job, given.size) == ("large", 4)
    manager.change(
        jobs=[malleable("large", NAMES), malleable("small", ["d"], state=JobState.SUCCEEDED, allocations=[])]
    )
    for later_s, told in ((100, [6]), (300, [6, 8])):
        clock.now += later_s
        await step(scheduler, manager)
        assert [each.size for each in manager.told("resize.proposed")][1:] == told
        manager.change(jobs=[malleable("large", [*NAMES, "a", "b"])])


async def test_what_the_manager_does_not_take_is_not_given(
    compiled: None, bus: MemoryBus, manager: FakeManager, scheduler: Scheduler, clock: Clock
) -> None:
    large = malleable("large", [*NAMES, "a", "b", "c"])
    manager.change(nodes=places(), links=LINKS, jobs=[large, malleable("small", ["d"])])
    await step(scheduler, manager)
    (given,) = manager.told("resize.proposed")
    no = ResizeRejected(resize=given.resize, job="large", attempt=1, reason="it has changed", stale=True)
    await manager.tell("resize", "rejected", "large", no)
    await manager.settled()
    manager.change(jobs=[malleable("small", ["d"], state=JobState.SUCCEEDED, allocations=[])])
    await step(scheduler, manager)
    assert [(each.job, each.size) for each in manager.told("resize.proposed")][1:] == [("large", 8)]


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


async def test_how_fast_a_job_is_taken_to_be_is_told_when_asked(
    running: Scheduler, manager: FakeManager, bus: MemoryBus
) -> None:
    manager.change(nodes=places(), links=LINKS, jobs=[malleable("m", ["a", "b"], speeds=speeds(LINEAR))])
    await manager.tell("topology", "changed", "t", TopologyChanged(links=0, media=0))
    await manager.until(lambda: "m" in running.reader.view.jobs)
    for job, told in (("m", {1: 5.0, 2: 10.0, 3: 15.0}), ("unknown", {})):
        raw = await bus.request(subjects.rpc("scheduler", "speed"), SpeedQuery(job=job).encode(), timeout_s=10)
        assert SpeedAnswer.model_validate_json(raw).rates == pytest.approx(told, rel=0.05)
