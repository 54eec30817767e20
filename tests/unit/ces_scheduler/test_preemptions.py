"""Jobs that make room for more urgent ones: what is proposed, when again, and how a suspended job goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from bus_manager import FakeManager
from cluster_state import GIB, MBIT, NOW, job
from memory_bus import MemoryBus
from queue_looks import placing
from scheduler_steps import NODES, Clock, ask, proposals, refusals, scheduler_on, step, waiting

from ces_common import subjects
from ces_common.messages.plans import PreemptionProposed, PreemptionRejected, Victim
from ces_common.messages.records import JobRecord
from ces_common.queuefile import QueueFile
from ces_common.states import AllocationState, JobState
from ces_core.queue.parameters import Parameters
from ces_scheduler.cycle_input import parameters_of
from ces_scheduler.preemptions import ANSWER_S
from ces_scheduler.proposals import backoff_s
from ces_scheduler.service import EVENTS, REFILL_S, Scheduler

WAY = ("a", "s", "b")
PREEMPTING = Parameters(preemption=20)


@pytest.fixture
async def preempting(compiled: None, bus: MemoryBus, clock: Clock) -> AsyncIterator[Scheduler]:
    scheduler = scheduler_on(bus, clock, placing(parameters=PREEMPTING))
    await scheduler.reader.start(EVENTS, scheduler._event)
    yield scheduler
    await scheduler.reader.close()


def low(name: str = "low", preemption: str = "stop", **fields: Any) -> JobRecord:
    """It fills both nodes' CPU, a quarter of their memory, and half of the way between them."""
    return job(
        name, ["a", "b"], [(0, 1, 50 * MBIT, WAY)], task={"cpu": 4000, "memory": GIB}, priority=10, expected_s=3600.0,
        started_at=NOW, preemption=preemption, **fields,
    )  # fmt: skip


def suspended(**fields: Any) -> JobRecord:
    record = low(preemption="suspend", state=JobState.SUSPENDED, **fields)
    flows = [flow.model_copy(update={"rate": 0}) for flow in record.reserved]
    return record.model_copy(update={"reserved": flows, "flows": [record.flows[0].model_copy(update={"min": MBIT})]})


def leaving(record: JobRecord) -> JobRecord:
    members = [each.model_copy(update={"state": AllocationState.STOPPING}) for each in record.allocations]
    return record.model_copy(update={"state": JobState.RESCHEDULING, "allocations": members})


def preemptions(manager: FakeManager) -> list[PreemptionProposed]:
    return manager.told("preemption.proposed")


def urgent(name: str = "urgent", **fields: Any) -> JobRecord:
    return waiting(name, **{"priority": 90, "expected_s": 60.0} | fields)


def test_the_queue_file_says_whether_anybody_is_preempted() -> None:
    assert parameters_of(QueueFile()).preemption is None
    assert parameters_of(QueueFile(preemption=30)).preemption == 30


async def test_by_default_nobody_is(scheduler: Scheduler, wired: FakeManager) -> None:
    wired.change(jobs=[low(), urgent()])
    await step(scheduler, wired)
    assert preemptions(wired) == []


async def test_a_more_urgent_job_is_told_who_makes_room_and_starts_when_they_have(
    preempting: Scheduler, wired: FakeManager
) -> None:
    wired.change(jobs=[low(), urgent()])
    await step(preempting, wired)
    (proposal,) = preemptions(wired)
    assert (proposal.job, proposal.attempt, proposal.version) == ("urgent", 1, wired.version)
    assert proposal.victims == [Victim(job="low", attempt=1, how="stop")]
    (refused,) = refusals(wired)
    assert refused.reason.code == "preempting"
    assert (refused.queue_status.held_by, refused.queue_status.reserved) == (["low"], True)
    wired.change(jobs=[leaving(low())])
    await step(preempting, wired)
    assert (len(preemptions(wired)), proposals(wired)) == (1, [])
    gone = job("low", tasks=2, asked=[(0, 1, MBIT, 50 * MBIT)], task={"cpu": 4000}, priority=10, attempt=2)
    wired.change(jobs=[gone])
    await step(preempting, wired)
    assert [plan.job for plan in proposals(wired)] == ["urgent"]
    assert len(preemptions(wired)) == 1


@pytest.mark.parametrize(
    ("preemption", "state", "how"),
    [
        ("suspend", JobState.RUNNING, "suspend"),
        ("suspend", JobState.STARTING, "stop"),
        ("stop", JobState.RUNNING, "stop"),
        ("suspend", JobState.PAUSED, None),
    ],
)
async def test_only_what_runs_can_be_suspended_and_what_its_user_paused_is_left_alone(
    preempting: Scheduler, wired: FakeManager, preemption: str, state: JobState, how: str | None
) -> None:
    wired.change(jobs=[low(preemption=preemption, state=state), urgent()])
    await step(preempting, wired)
    assert [victim.how for each in preemptions(wired) for victim in each.victims] == ([how] if how else [])


async def test_what_got_no_answer_is_proposed_again(preempting: Scheduler, wired: FakeManager, clock: Clock) -> None:
    wired.change(jobs=[low(), urgent()])
    assert await step(preempting, wired) <= ANSWER_S
    await step(preempting, wired)
    assert len(preemptions(wired)) == 1
    clock.now += ANSWER_S
    await step(preempting, wired)
    first, again = preemptions(wired)
    assert first.victims == again.victims
    assert first.preemption != again.preemption


async def test_a_stale_proposal_is_made_anew_and_one_refused_for_good_not_for_a_while(
    preempting: Scheduler, wired: FakeManager, clock: Clock
) -> None:
    async def reject(proposal: PreemptionProposed, *, stale: bool) -> None:
        no = PreemptionRejected(preemption=proposal.preemption, job=proposal.job, reason="no", stale=stale)
        await wired.tell("preemption", "rejected", proposal.preemption, no)
        await wired.settled()

    wired.change(jobs=[low(), urgent()])
    await step(preempting, wired)
    await reject(preemptions(wired)[0], stale=True)
    await step(preempting, wired)
    assert len(preemptions(wired)) == 2
    await reject(preemptions(wired)[0], stale=False)  # long forgotten: no answer to what is asked now
    await step(preempting, wired)
    await reject(preemptions(wired)[1], stale=False)
    await step(preempting, wired)
    assert len(preemptions(wired)) == 2
    assert not refusals(wired)[-1].queue_status.reserved, "nobody makes it room"
    clock.now += backoff_s(2)
    wired.change(jobs=[urgent("other", cpu=4000)])
    await step(preempting, wired)
    assert len(preemptions(wired)) > 2


async def test_one_that_is_stale_again_and_again_is_decided_anew_only_now_and_then(
    preempting: Scheduler, wired: FakeManager, clock: Clock
) -> None:
    wired.change(jobs=[low(), urgent()])
    for count in (1, 2):
        await step(preempting, wired)
        assert len(preemptions(wired)) == count
        last = preemptions(wired)[-1]
        no = PreemptionRejected(preemption=last.preemption, job=last.job, reason="another must go first", stale=True)
        await wired.tell("preemption", "rejected", last.preemption, no)
        await wired.settled()
    assert await step(preempting, wired) > 0
    assert len(preemptions(wired)) == 2
    clock.now += ANSWER_S
    await step(preempting, wired)
    assert len(preemptions(wired)) == 3


async def test_what_was_rejected_while_a_cycle_went_on_is_decided_anew_by_the_next(
    preempting: Scheduler, wired: FakeManager
) -> None:
    wired.change(jobs=[low(), urgent()])
    await step(preempting, wired)
    (first,) = preemptions(wired)

    def answered(*_: Any) -> None:
        no = PreemptionRejected(preemption=first.preemption, job=first.job, reason="others make room", stale=True)
        preempting._preemptions.rejected(no)

    preempting._record = answered
    wired.change(jobs=[waiting("other")])
    assert await step(preempting, wired) == 0
    assert len(preemptions(wired)) == 1
    await step(preempting, wired)
    assert len(preemptions(wired)) == 2


async def test_what_is_proposed_is_never_older_than_the_version_that_it_names(
    preempting: Scheduler, wired: FakeManager, clock: Clock, bus: MemoryBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run may read the manager's state again while a step is under way."""
    wired.change(jobs=[low(), urgent()])
    reroute = preempting._revisions.reroute

    async def overtaken(*given: Any) -> float:
        wired.change(jobs=[low("another")])
        assert await preempting.reader.refresh()
        return await reroute(*given)

    monkeypatch.setattr(preempting._revisions, "reroute", overtaken)
    version = wired.version
    await step(preempting, wired)
    assert [each.version for each in preemptions(wired)] == [version]


async def test_a_suspended_job_goes_on_where_it_is_when_there_is_room(
    preempting: Scheduler, wired: FakeManager
) -> None:
    busy = job("urgent", ["a", "b"], task={"cpu": 3000, "memory": GIB}, priority=90, expected_s=60.0, started_at=NOW)
    wired.change(jobs=[suspended(), busy])
    await step(preempting, wired)
    assert (proposals(wired), preemptions(wired)) == ([], [])
    (refused,) = refusals(wired)
    assert (refused.job, refused.queue_status.held_by) == ("low", ["urgent"])
    over = [each.model_copy(update={"state": AllocationState.SUCCEEDED}) for each in busy.allocations]
    wired.change(jobs=[busy.model_copy(update={"state": JobState.SUCCEEDED, "allocations": over})])
    await step(preempting, wired)
    (plan,) = proposals(wired)
    assert (plan.job, plan.attempt, plan.assignments) == ("low", 1, {"w-0": "a", "w-1": "b"})
    assert plan.flows[0].rate == 50 * MBIT


async def test_what_a_suspended_job_keeps_is_nobody_elses(preempting: Scheduler, wired: FakeManager) -> None:
    keeps = suspended().model_copy(update={"priority": 80})
    small = waiting("small", cpu=1000, priority=80, expected_s=60.0)
    large = job("large", tasks=2, task={"cpu": 1000, "memory": 4 * GIB}, priority=85)
    blocker = job("blocker", ["a", "b"], task={"cpu": 2000, "memory": GIB // 4}, priority=100, started_at=NOW)
    wired.change(jobs=[keeps, blocker, large, small])
    await step(preempting, wired)
    assert [plan.job for plan in proposals(wired)] == ["small"]
    assert {refused.job: refused.reason.code for refused in refusals(wired)}["large"] == "memory-per-node"


async def test_the_memory_of_a_suspended_job_is_freed_by_stopping_it(preempting: Scheduler, wired: FakeManager) -> None:
    large = job("large", tasks=2, task={"cpu": 1000, "memory": 4 * GIB}, priority=90)
    blocker = job("blocker", ["a", "b"], task={"cpu": 2000, "memory": GIB // 16}, priority=100, started_at=NOW)
    blocker = blocker.model_copy(update={"tasks": [t.model_copy(update={"memory": 0}) for t in blocker.tasks]})
    wired.change(jobs=[suspended(), blocker, large])
    await step(preempting, wired)
    (proposal,) = preemptions(wired)
    assert (proposal.job, proposal.victims) == ("large", [Victim(job="low", attempt=1, how="stop")])


async def test_a_cordon_keeps_no_suspended_job_from_going_on(preempting: Scheduler, wired: FakeManager) -> None:
    wired.change(nodes=[each.model_copy(update={"cordoned": True}) for each in NODES], jobs=[suspended()])
    await step(preempting, wired)
    assert [plan.job for plan in proposals(wired)] == ["low"]


async def test_room_that_appears_is_not_filled_with_the_flows_of_a_suspended_job(
    preempting: Scheduler, wired: FakeManager, clock: Clock
) -> None:
    busy = job("urgent", ["a", "b"], task={"cpu": 3000, "memory": GIB}, priority=90, expected_s=60.0, started_at=NOW)
    wired.change(jobs=[suspended(), busy])
    clock.now += REFILL_S
    await step(preempting, wired)
    assert wired.told("revision.proposed") == []


async def test_a_dry_run_says_who_would_make_room_and_nobody_does(
    preempting: Scheduler, wired: FakeManager, bus: MemoryBus
) -> None:
    await bus.serve(subjects.rpc("scheduler", "plan"), preempting._dry_run)
    wired.change(jobs=[low(preemption="suspend")])
    answer = await ask(bus, priority=90)
    assert (answer.feasible, answer.position, answer.held_by) == (False, 1, ["low"])
    assert answer.reason is not None
    assert answer.reason.text == "less urgent jobs would make room for it: low suspended"
    wired.change(jobs=[low(preemption="suspend").model_copy(update={"tenant": "other"})])
    answer = await ask(bus, priority=90)
    assert answer.reason is not None
    assert answer.reason.text == "less urgent jobs would make room for it: 1 of other tenants suspended"
    assert preemptions(wired) == []
