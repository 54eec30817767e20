"""Deadlines in the scheduler's step: who is admitted, who is refused, who grows and who shrinks for it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from bus_manager import FakeManager
from malleable_records import LINKS, NAMES, malleable, places, rigid
from memory_bus import MemoryBus
from queue_looks import placing
from scheduler_steps import Clock, ask, scheduler_on, step

from ces_common.messages.events import DeadlineJudged
from ces_common.messages.plans import ResizeProposed
from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_core.queue.parameters import Parameters
from ces_scheduler.deadline_shares import Judgement, judge
from ces_scheduler.deadlines import CONFIRM_S, LAST, LATER, time_of
from ces_scheduler.service import Scheduler


@pytest.fixture
async def asked(compiled: None, bus: MemoryBus, clock: Clock) -> AsyncIterator[Scheduler]:
    scheduler = scheduler_on(bus, clock)
    yield scheduler
    await scheduler.reader.close()


async def look(manager: FakeManager, scheduler: Scheduler, *jobs: JobRecord) -> None:
    """A step in which these jobs are new."""
    manager.change(nodes=places(), links=LINKS, jobs=list(jobs))
    await step(scheduler, manager)


def resizes(manager: FakeManager) -> list[tuple[str, int]]:
    found: list[ResizeProposed] = manager.told("resize.proposed")
    return [(each.job, each.size) for each in found]


def judgements(manager: FakeManager) -> list[DeadlineJudged]:
    return manager.told("deadline.judged")


async def test_a_job_at_stake_grows_at_once_and_as_far_as_it_may(manager: FakeManager, asked: Scheduler) -> None:
    """Though it has just begun, and would not save twice what a resize takes."""
    await look(manager, asked, malleable("m", ["a"], ran_s=5.0, work=600.0, due_s=300.0))
    assert resizes(manager) == [("m", 8)]


async def test_one_without_a_deadline_shrinks_by_as_little_as_it_takes(manager: FakeManager, asked: Scheduler) -> None:
    other = malleable("other", [*NAMES, *NAMES[:3]], ran_s=5.0)
    await look(manager, asked, malleable("m", ["d"], ran_s=5.0, work=600.0, due_s=230.0), other)
    assert resizes(manager) == [("other", 4)], "four of eight, with 30 s for each of the two resizes"


async def test_one_with_a_later_deadline_gives_no_more_than_it_can_spare(
    manager: FakeManager, asked: Scheduler
) -> None:
    later = malleable("later", [*NAMES, *NAMES[:3]], ran_s=5.0, work=4000.0, due_s=1030.0)
    await look(manager, asked, malleable("m", ["d"], ran_s=5.0, work=600.0, due_s=180.0), later)
    assert resizes(manager) == [("later", 4)]
    assert all(each.kept for each in judgements(manager))


async def test_one_that_will_have_ended_by_then_gives_nothing(manager: FakeManager, asked: Scheduler) -> None:
    soon_over = malleable("soon-over", [*NAMES, *NAMES[:3]], ran_s=5.0, work=140.0, due_s=1000.0)
    await look(manager, asked, malleable("m", ["d"], ran_s=5.0, work=600.0, due_s=180.0), soon_over)
    assert resizes(manager) == []


async def test_no_more_urgent_job_shrinks(manager: FakeManager, asked: Scheduler) -> None:
    urgent = malleable("urgent", [*NAMES, *NAMES[:3]], priority=80)
    await look(manager, asked, malleable("m", ["d"], work=600.0, due_s=230.0), urgent)
    assert resizes(manager) == []
    (judged,) = judgements(manager)
    assert not judged.kept


async def test_room_is_made_for_as_many_workers_as_who_waits_needs_to_be_in_time(
    manager: FakeManager, asked: Scheduler
) -> None:
    """It takes 200 s with three."""
    waits = malleable("waits", [], work=600.0, due_s=250.0)
    await look(manager, asked, waits, malleable("m", NAMES * 2))
    assert resizes(manager) == [("m", 5)]


async def test_where_two_must_give_they_do_so_one_after_the_other(manager: FakeManager, asked: Scheduler) -> None:
    one, two = malleable("one", [*NAMES[:3]], ran_s=5.0), malleable("two", ["a", "b", "c", "d"], ran_s=5.0)
    await look(manager, asked, malleable("m", ["d"], ran_s=5.0, work=1000.0, due_s=230.0), one, two)
    ((job, size),) = resizes(manager)
    assert (job, size) == ("two", 1)


async def test_what_a_job_is_owed_is_given_to_nobody_else(manager: FakeManager, asked: Scheduler, clock: Clock) -> None:
    at_stake = malleable("m", ["d"], ran_s=5.0, work=600.0, due_s=300.0)
    await look(manager, asked, at_stake, malleable("other", [*NAMES, *NAMES[:3]], ran_s=5.0))
    clock.now += 6  # the first proposal was answered by what has become of it
    await look(manager, asked, malleable("other", [*NAMES, "a"], ran_s=5.0), rigid("r", 1))
    assert manager.told("plan.proposed") == []
    assert resizes(manager)[1:] == [("m", 3)]


async def test_what_a_job_is_owed_is_no_room_for_which_an_overdue_one_waits(
    manager: FakeManager, bus: MemoryBus, compiled: None, clock: Clock
) -> None:
    """Of the six places on its nodes that become free, two are owed, and it has a place on five reserved."""
    scheduler = scheduler_on(bus, clock, placing(parameters=Parameters(bound_s=1.0)))
    nodes = [each.model_copy(update={"labels": {"kind": "d" if each.name == "d" else "abc"}}) for each in places()]
    waits = rigid("r", 5)
    tasks = [task.model_copy(update={"labels": {"kind": "abc"}}) for task in waits.tasks]
    at_stake = malleable("m", ["d"], ran_s=5.0, work=600.0, due_s=240.0)
    other = malleable("other", [*NAMES, *NAMES[:3]], ran_s=5.0)
    manager.change(nodes=nodes, links=LINKS, jobs=[at_stake, other, waits.model_copy(update={"tasks": tasks})])
    await step(scheduler, manager)
    clock.now += 6
    manager.change(nodes=nodes, links=LINKS, jobs=[malleable("other", ["d"], ran_s=5.0)])
    await step(scheduler, manager)
    assert manager.told("plan.proposed") == []
    assert resizes(manager)[1:] == [("m", 7)]
    await scheduler.reader.close()


async def test_what_is_owed_on_links_that_are_gone_is_owed_no_more(
    manager: FakeManager, asked: Scheduler, clock: Clock
) -> None:
    at_stake = malleable("m", ["d"], ran_s=5.0, work=600.0, due_s=240.0)
    await look(manager, asked, at_stake, malleable("other", [*NAMES, *NAMES[:3]], ran_s=5.0))
    clock.now += 6
    manager.change(links=LINKS[:2], jobs=[malleable("other", [*NAMES, "a"], ran_s=5.0), rigid("r", 1)])
    await step(asked, manager)
    assert [plan.job for plan in manager.told("plan.proposed")] == ["r"]


async def test_surplus_goes_no_further_than_the_policy_says(manager: FakeManager, asked: Scheduler) -> None:
    """Beside one that needs three of the eight workers, a job that says how much it has to do gets five."""
    await look(
        manager,
        asked,
        malleable("m", ["a", "b", "c"], ran_s=5.0, work=600.0, due_s=231.0, hint={1: 1.0, 2: 2.0, 3: 3.0, 4: 3.0}),
        malleable("other", ["d"], work=40_000.0),
    )
    assert resizes(manager) == [("other", 5)]


async def test_an_admitted_job_is_told_and_starts(manager: FakeManager, asked: Scheduler) -> None:
    await look(manager, asked, malleable("m", [], work=600.0, due_s=300.0))
    (judged,) = judgements(manager)
    assert (judged.job, judged.attempt, judged.kept, judged.refusal) == ("m", 1, True, None)
    assert judged.end_at is not None
    assert [plan.job for plan in manager.told("plan.proposed")] == ["m"]
    kinds = [fact.type for fact in manager.facts]
    assert kinds.index("ces.v1.deadline.judged") < kinds.index("ces.v1.plan.proposed")


def due(record: JobRecord, due_s: float, lasts_s: float, policy: str = "best-effort") -> JobRecord:
    """A rigid job with a deadline."""
    deadline = malleable("m", [], work=1.0, due_s=due_s, policy=policy)
    asked = {"deadline": deadline.deadline, "deadline_at": deadline.deadline_at, "expected_s": lasts_s}
    return record.model_copy(update=asked)


def runs(record: JobRecord, on: list[str], since: Clock) -> JobRecord:
    """It has just begun, with one of its tasks on each of these nodes."""
    placed = {"allocations": malleable(record.name, on).allocations, "started_at": since.time()}
    return record.model_copy(update=placed | {"state": JobState.RUNNING})


def over(record: JobRecord) -> JobRecord:
    return record.model_copy(update={"state": JobState.SUCCEEDED, "allocations": []})


async def test_one_that_is_to_begin_later_leaves_the_room_to_one_that_needs_it_first(
    manager: FakeManager, asked: Scheduler, clock: Clock
) -> None:
    """Half of the places are free now, and all of them in 50 s, when the earlier deadline needs them."""
    before = runs(due(rigid("before", 4), 900.0, 50.0), NAMES, clock)
    early, late = due(rigid("early", 8), 85.0, 30.0), due(rigid("late", 4), 900.0, 100.0)
    await look(manager, asked, before, early, late)
    assert manager.told("plan.proposed") == []
    assert [(each.job, each.reason) for each in manager.told("plan.refused")] == [("early", LATER), ("late", LATER)]
    clock.now += 50
    await look(manager, asked, over(before))
    assert [plan.job for plan in manager.told("plan.proposed")] == ["early"]
    early = runs(early, NAMES * 2, clock)
    await look(manager, asked, early)
    clock.now += 30
    await look(manager, asked, over(early))
    assert [plan.job for plan in manager.told("plan.proposed")] == ["early", "late"]


@pytest.mark.parametrize(("tasks", "size"), [(8, 1), (0, 4)])
async def test_one_that_starts_grows_into_nothing_that_is_for_one_that_begins_later(
    tasks: int, size: int, manager: FakeManager, asked: Scheduler, clock: Clock
) -> None:
    """All places are needed in 50 s, or none."""
    before = runs(due(rigid("before", 4), 900.0, 50.0), NAMES, clock)
    later = [due(rigid("later", tasks), 85.0, 30.0)] if tasks else []
    await look(manager, asked, before, *later, malleable("grows", []))
    assert [(plan.job, plan.size) for plan in manager.told("plan.proposed")] == [("grows", size)]


async def test_a_late_one_comes_after_those_that_can_be_in_time_until_it_is_overdue(
    manager: FakeManager, asked: Scheduler, clock: Clock
) -> None:
    before = runs(due(rigid("before", 4), 900.0, 50.0), NAMES, clock)
    early, late = due(rigid("early", 8), 85.0, 30.0), due(rigid("late", 4), 60.0, 100.0)
    await look(manager, asked, before, early, late.model_copy(update={"submitted_at": clock.time()}))
    assert [(each.job, each.reason) for each in manager.told("plan.refused")] == [("early", LATER), ("late", LAST)]
    assert manager.told("plan.proposed") == []
    await look(manager, asked, late)
    assert [plan.job for plan in manager.told("plan.proposed")] == ["late"], "two hours later"


@pytest.mark.parametrize(("due_s", "first"), [(130.0, "long"), (900.0, "short")])
async def test_one_that_must_begin_now_comes_first(
    due_s: float, first: str, manager: FakeManager, asked: Scheduler, clock: Clock
) -> None:
    """Else the one that asks for less, and is done soon."""
    short = rigid("short", 3).model_copy(update={"expected_s": 1.0})
    both = [each.model_copy(update={"submitted_at": clock.time()}) for each in (short, rigid("long", 6))]
    await look(manager, asked, both[0], due(both[1], due_s, 120.0, policy="refuse"))
    assert [plan.job for plan in manager.told("plan.proposed")] == [first]


@pytest.mark.parametrize("end_s", [1e12, 1e17, 1e300, math.inf, math.nan])
def test_what_no_calendar_has_is_no_time(end_s: float) -> None:
    assert time_of(end_s) is None


async def test_one_that_cannot_end_in_time_is_refused_once_that_is_sure(
    manager: FakeManager, asked: Scheduler, clock: Clock
) -> None:
    await look(manager, asked, malleable("m", [], work=1600.0, due_s=100.0))
    assert judgements(manager) == []
    (waits,) = manager.told("plan.refused")
    assert waits.reason.code == "deadline"
    clock.now += CONFIRM_S
    for _ in range(3):
        await step(asked, manager)
    (judged,) = judgements(manager)
    assert judged.refusal is not None
    assert judged.refusal.code == "deadline"
    assert judged.end_at == clock.time() + timedelta(seconds=202)
    assert judged.end_at.strftime("%Y-%m-%dT%H:%M:%SZ") in judged.refusal.text
    assert manager.told("plan.proposed") == []


async def test_one_that_another_scheduler_admits_after_all_is_held_back_no_longer(
    manager: FakeManager, asked: Scheduler, clock: Clock
) -> None:
    await look(manager, asked, malleable("m", [], work=1600.0, due_s=100.0))
    clock.now += CONFIRM_S
    await step(asked, manager)
    assert [each.refusal is not None for each in judgements(manager)] == [True]
    await look(manager, asked, malleable("m", [], work=1600.0, due_s=100.0, admitted=True))
    assert [plan.job for plan in manager.told("plan.proposed")] == ["m"]


async def test_a_judgement_holds_for_those_alone_who_were_judged(
    bus: MemoryBus, manager: FakeManager, asked: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run takes in a newer state meanwhile: one job is gone from it, and another has come."""
    manager.change(nodes=places(), links=LINKS, jobs=[malleable("m", [], work=1600.0, due_s=100.0)])

    async def judge_beside(question: Callable[..., Judgement], *how: Any) -> Judgement:
        if question is judge:
            gone = malleable("m", [], work=1600.0, due_s=100.0, state=JobState.CANCELLED)
            manager.change(jobs=[gone, malleable("new", [], work=1600.0, due_s=100.0)])
            await asked.reader.refresh()
            asked._waiting()
        return question(*how)

    monkeypatch.setattr(asyncio, "to_thread", judge_beside)
    await step(asked, manager)
    assert manager.told("plan.proposed") == manager.told("plan.refused") == []


async def test_after_a_judgement_that_took_long_the_next_waits_but_for_a_new_job(
    manager: FakeManager, asked: Scheduler, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = list[float]()

    def slow(*question: Any) -> Judgement:
        found.append(clock.now)
        clock.now += 1.0
        return judge(*question)

    monkeypatch.setattr("ces_scheduler.deadlines.judge", slow)
    one = malleable("one", ["a"], work=600.0, due_s=900.0, admitted=True)
    await look(manager, asked, one)
    began = clock.now
    await look(manager, asked, malleable("other", ["b"], ran_s=5.0))
    assert len(found) == 1
    await look(manager, asked, malleable("new", [], work=600.0, due_s=900.0))
    assert found[1:] == [began]
    clock.now += 3.0
    await look(manager, asked, malleable("other", ["c"], ran_s=5.0))
    assert len(found) == 3


async def test_a_refusal_is_not_made_while_it_was_found_once(
    manager: FakeManager, asked: Scheduler, clock: Clock
) -> None:
    """A node that joins in between makes room for it."""
    manager.change(nodes=places()[:1], links=LINKS, jobs=[malleable("m", [], work=600.0, due_s=200.0)])
    await step(asked, manager)
    clock.now += CONFIRM_S / 2
    await look(manager, asked)
    clock.now += CONFIRM_S
    await step(asked, manager)
    assert [each.kept for each in judgements(manager)] == [True]


async def test_while_nodes_are_out_of_reach_nobody_is_refused_who_could_have_them(
    manager: FakeManager, asked: Scheduler, clock: Clock
) -> None:
    away = [each.model_copy(update={"state": "unreachable"}) for each in places()[1:]]
    manager.change(nodes=[places()[0], *away], links=LINKS, jobs=[malleable("m", [], work=600.0, due_s=200.0)])
    await step(asked, manager)
    clock.now += 5 * CONFIRM_S
    await step(asked, manager)
    assert judgements(manager) == manager.told("plan.proposed") == []
    await look(manager, asked)
    assert [each.kept for each in judgements(manager)] == [True]


async def test_what_has_not_changed_is_not_told_again(manager: FakeManager, asked: Scheduler, clock: Clock) -> None:
    late = malleable("m", NAMES * 2, work=1600.0, due_s=100.0, admitted=True)
    await look(manager, asked, late)
    clock.now += 20
    await step(asked, manager)
    assert [each.kept for each in judgements(manager)] == [False]


async def test_what_the_broker_may_have_lost_is_told_again(manager: FakeManager, asked: Scheduler) -> None:
    manager.change(nodes=places(), links=LINKS, jobs=[malleable("m", NAMES, work=600.0, due_s=300.0, admitted=True)])
    for _ in range(2):
        await step(asked, manager)
        await asked._reconnected()
    assert [each.kept for each in judgements(manager)] == [True, True]


async def test_a_dry_run_names_the_earliest_end(
    compiled: None, bus: MemoryBus, manager: FakeManager, running: Scheduler, clock: Clock
) -> None:
    manager.change(nodes=places(), links=LINKS)
    plan: dict[str, Any] = {
        "tasks": [{"name": "w", "command": ["x"], "resources": {"cpu": "1", "memory": "64Mi"}}],
        "flows": {"topology": "ring", "bandwidth": {"min": "1Mbit", "max": "10Mbit"}},
        "elastic": {"group": "w", "workers": {"min": 1, "max": 8}, "speed": {"total": 1600, "hint": {1: 1, 8: 8}}},
    }
    answer = await ask(bus, **plan, deadline="100s")
    assert (answer.feasible, answer.end_at) == (False, clock.time() + timedelta(seconds=202))
    assert answer.reason is not None
    assert answer.reason.code == "deadline"
    answer = await ask(bus, **plan, deadline="300s")
    assert (answer.feasible, answer.size, answer.end_at) == (True, 8, clock.time() + timedelta(seconds=202))
