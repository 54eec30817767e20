"""What the scheduler proposes for jobs that run: when a link dies, when room appears, and when it keeps quiet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from bus_manager import FakeManager
from cluster_state import MBIT, job, node, view_of, wire
from queue_looks import SOON, decided, placing

from ces_common.bus.port import BusUnavailable
from ces_common.messages.plans import FlowPlan, PlanRevised, RevisionProposed, RevisionRejected
from ces_common.messages.records import FlowRecord, JobRecord, LinkRecord
from ces_common.self_adjustment import SelfAdjustment
from ces_common.states import AllocationState, JobState
from ces_core.bandwidth.reroute import reoptimise, reroute, warm_up
from ces_core.registry import DEFAULT, get_solver
from ces_scheduler.offer import offer_of
from ces_scheduler.proposals import backoff_s
from ces_scheduler.revisable_flows import Soundness, revisable_flows, revise
from ces_scheduler.revisions import ANSWER_S
from ces_scheduler.service import EVENTS, REFILL_S, Scheduler

RESYNC_S = 30.0
NODES = [node(name, number) for number, name in enumerate("abcd", 1)]
RING = [link for ends in ("ab", "bc", "cd", "da") for link in wire(*ends)]  # 100 Mbit/s, of which 95 can be reserved


def flow(number: int, path: str, rate: int, low: int = 10, high: int = 50) -> FlowRecord:
    return FlowRecord(
        number=number, src="w-0", dst="w-1", min=low * MBIT, max=high * MBIT, rate=rate * MBIT, path=list(path)
    )


def running(name: str, reserved: FlowRecord, **fields: Any) -> JobRecord:
    made = job(name, [reserved.path[0], reserved.path[-1]], **fields)
    return made.model_copy(update={"reserved": [reserved]})


def broken(*hops: str) -> list[LinkRecord]:
    return [link.model_copy(update={"state": "down"}) if link.src + link.dst in hops else link for link in RING]


def given(proposal: RevisionProposed) -> dict[str, tuple[str, float]]:
    """Job -> path and Mbit/s of its flow."""
    return {part.job: ("".join(plan.path), plan.rate / MBIT) for part in proposal.jobs for plan in part.flows}


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    warm_up()


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def scheduler(manager: FakeManager, clock: Clock) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(manager._bus, placing(), RESYNC_S, clock, now=lambda: SOON)
    await scheduler.reader.start(EVENTS, scheduler._event)
    yield scheduler
    await scheduler.reader.close()


async def step(scheduler: Scheduler, manager: FakeManager) -> list[RevisionProposed]:
    """What is new after one more step."""
    before = len(manager.told("revision.proposed"))
    await scheduler.step()
    await manager.settled()
    return manager.told("revision.proposed")[before:]


async def reject(manager: FakeManager, proposal: RevisionProposed, *, stale: bool = False) -> None:
    told = RevisionRejected(revision=proposal.revision, reason="no", stale=stale)
    await manager.tell("revision", "rejected", proposal.revision, told)
    await manager.settled()


async def commit(manager: FakeManager, proposal: RevisionProposed, jobs: Sequence[JobRecord]) -> None:
    """The manager takes it; ``jobs`` are how they are then."""
    manager.change(jobs=jobs)
    for part in proposal.jobs:
        told = PlanRevised(revision=proposal.revision, job=part.job, attempt=part.attempt, cause=proposal.cause)
        await manager.tell("plan", "revised", proposal.revision, told)
    await manager.settled()


async def test_a_dead_link_is_gone_around_at_once_and_nothing_follows_from_it(
    scheduler: Scheduler, manager: FakeManager, clock: Clock
) -> None:
    manager.change(nodes=NODES, links=RING, jobs=[running("j", flow(1, "ab", 50)), running("k", flow(2, "bc", 50))])
    assert await step(scheduler, manager) == []
    manager.change(links=broken("ab"))
    (proposal,) = await step(scheduler, manager)
    assert (proposal.cause, proposal.version) == ("link", 2)
    assert given(proposal) == {"j": ("adcb", 50)}
    assert await step(scheduler, manager) == [], "one revision at a time"
    await commit(manager, proposal, [running("j", flow(1, "adcb", 50))])
    for _ in range(3):
        clock.now += REFILL_S
        assert await step(scheduler, manager) == []


async def test_room_is_filled_when_a_job_has_left_and_not_too_often(
    scheduler: Scheduler, manager: FakeManager, clock: Clock
) -> None:
    stays = running("stays", flow(1, "ab", 45, high=90))
    leaves = running("leaves", flow(2, "ab", 50))
    manager.change(nodes=NODES, links=RING, jobs=[stays, leaves])
    assert await step(scheduler, manager) == [], "what there is could not be shared better"
    gone = leaves.allocations[0].model_copy(update={"state": AllocationState.SUCCEEDED})
    over = {"state": JobState.SUCCEEDED, "allocations": [gone] * 2}
    manager.change(jobs=[leaves.model_copy(update=over)])
    assert await step(scheduler, manager) == [], "too soon after the last look"
    clock.now += REFILL_S
    (proposal,) = await step(scheduler, manager)
    assert proposal.cause == "room"
    assert given(proposal) == {"stays": ("ab", 90)}


async def test_room_goes_to_no_application_whose_rates_and_paths_keep_deadlines(
    scheduler: Scheduler, manager: FakeManager, clock: Clock
) -> None:
    own = running("own", flow(1, "ab", 45, high=90), adjust=SelfAdjustment())
    stays, leaves = running("stays", flow(2, "ab", 20, high=90)), running("leaves", flow(3, "ab", 30))
    manager.change(nodes=NODES, links=RING, jobs=[own, stays, leaves])
    await step(scheduler, manager)
    gone = leaves.allocations[0].model_copy(update={"state": AllocationState.SUCCEEDED})
    manager.change(jobs=[leaves.model_copy(update={"state": JobState.SUCCEEDED, "allocations": [gone] * 2})])
    clock.now += REFILL_S
    (proposal,) = await step(scheduler, manager)
    assert given(proposal) == {"stays": ("ab", 50)}
    await commit(manager, proposal, [])
    manager.change(links=broken("ab", "ba"))
    (proposal,) = await step(scheduler, manager)
    assert proposal.cause == "link"
    assert "own" in given(proposal), "around a broken link it is led like any other"


@pytest.mark.parametrize("how", ["no answer", "reconnected", "not published"])
async def test_a_lost_refill_is_proposed_again_and_a_committed_one_is_not(
    scheduler: Scheduler, manager: FakeManager, clock: Clock, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async def unavailable(*_: Any, **__: Any) -> None:
        raise BusUnavailable("gone")

    manager.change(nodes=NODES, links=RING, jobs=[running("j", flow(1, "ab", 45))])
    with monkeypatch.context() as patch:
        if how == "not published":
            patch.setattr(manager._bus, "publish_fact", unavailable)
        assert len(await step(scheduler, manager)) == (how != "not published")
    if how == "reconnected":
        await scheduler._reconnected()
    clock.now += max(ANSWER_S, REFILL_S)
    (again,) = await step(scheduler, manager)
    assert (again.cause, given(again)) == ("room", {"j": ("ab", 50)})
    await commit(manager, again, [running("j", flow(1, "ab", 50))])
    monkeypatch.setattr("ces_scheduler.revisions.revise", lambda *_: pytest.fail("it was worked out once more"))
    clock.now += REFILL_S
    assert await step(scheduler, manager) == []


async def test_a_node_that_is_back_lets_flows_lead_over_it(
    scheduler: Scheduler, manager: FakeManager, clock: Clock
) -> None:
    nodes = [*NODES[:3], node("d", 4, state="unreachable")]
    manager.change(nodes=nodes, links=broken("ab"), jobs=[running("j", flow(1, "ab", 0))])
    assert await step(scheduler, manager) == [], "there is no way yet"
    clock.now += REFILL_S
    manager.change(nodes=NODES[3:])
    (proposal,) = await step(scheduler, manager)
    assert (proposal.cause, given(proposal)) == ("room", {"j": ("adcb", 50)})


async def test_a_waiting_job_gets_room_before_flows_that_run(
    scheduler: Scheduler, manager: FakeManager, clock: Clock
) -> None:
    waits = job("waits", tasks=2, asked=[(0, 1, 40 * MBIT, 50 * MBIT)], task={"cpu": 3000})
    runs = running("runs", flow(1, "ab", 45, high=90))
    manager.change(nodes=NODES[:2], links=wire("a", "b"), jobs=[runs, waits])
    for _ in range(2):
        assert await step(scheduler, manager) == []
        assert [plan.job for plan in manager.told("plan.proposed")] == ["waits"]
        clock.now += REFILL_S
    manager.change(jobs=[waits.model_copy(update={"state": JobState.CANCELLED})])
    (proposal,) = await step(scheduler, manager)
    assert given(proposal) == {"runs": ("ab", 90)}


async def test_a_rejected_revision_is_worked_out_anew(scheduler: Scheduler, manager: FakeManager) -> None:
    manager.change(nodes=NODES, links=broken("ab"), jobs=[running("j", flow(1, "ab", 50))])
    (proposal,) = await step(scheduler, manager)
    await reject(manager, proposal)
    (again,) = await step(scheduler, manager)
    assert again.revision != proposal.revision
    assert given(again) == given(proposal)


@pytest.mark.parametrize("stale", [True, False])
async def test_a_broken_path_waits_only_where_its_revision_did_not_fit(
    scheduler: Scheduler, manager: FakeManager, clock: Clock, stale: bool
) -> None:
    manager.change(nodes=NODES, links=broken("ab"), jobs=[running("j", flow(1, "ab", 50))])
    for count in range(1, 5):
        (proposal,) = await step(scheduler, manager)
        assert proposal.cause == "link"
        await reject(manager, proposal, stale=stale)
        if not stale and backoff_s(count):
            assert await step(scheduler, manager) == []
            clock.now += backoff_s(count)


async def test_rejected_refills_do_not_delay_a_broken_path(
    scheduler: Scheduler, manager: FakeManager, clock: Clock
) -> None:
    grows = running("grows", flow(1, "bc", 20))
    manager.change(nodes=NODES, links=broken("ab"), jobs=[grows])
    for _ in range(2):
        clock.now += REFILL_S
        (proposal,) = await step(scheduler, manager)
        assert proposal.cause == "room"
        await reject(manager, proposal)
    manager.change(jobs=[running("j", flow(2, "ab", 50))])
    (proposal,) = await step(scheduler, manager)
    assert proposal.cause == "link"
    assert given(proposal)["j"] == ("adcb", 50)


def changes(jobs: list[JobRecord], links: list[LinkRecord], settle: Any = reroute, **node_fields: Any) -> Any:
    nodes = [node(each.name, n, **(node_fields if each.name == "d" else {})) for n, each in enumerate(NODES, 1)]
    view = view_of(nodes, links, jobs)
    return [(part.job, part.attempt, part.flows) for part in revise(revisable_flows(view, offer_of(view)), settle)]


def test_what_cannot_be_heard_is_left_as_it_is() -> None:
    over_d = running("j", flow(1, "adc", 20))
    assert changes([over_d], RING, state="unreachable") == []
    assert changes([over_d], RING, reoptimise, state="unreachable") == []
    around = FlowPlan(src="w-0", dst="w-1", rate=50 * MBIT, path=list("abc"))
    assert changes([over_d], broken("dc"), state="unreachable") == [("j", 1, [around])]
    assert changes([running("j", flow(1, "ad", 20))], broken("ad"), state="unreachable") == []


@pytest.mark.parametrize("name", sorted({"search", DEFAULT}))
def test_a_new_job_takes_a_longer_path_only_where_that_is_allowed(name: str) -> None:
    full = running("full", flow(1, "ab", 90, high=90))
    view = view_of(NODES, RING, [full])
    asked = job("new", tasks=2, asked=[(0, 1, 10 * MBIT, 50 * MBIT)], task={"labels": {}})
    tasks = [task.model_copy(update={"labels": {"host": name}}) for task, name in zip(asked.tasks, "ab", strict=True)]
    asked = asked.model_copy(update={"tasks": tasks})
    nodes = {name: each.model_copy(update={"labels": {"host": name}}) for name, each in view.nodes.items()}
    offer = replace(offer_of(view), nodes=nodes)

    def path(paths: int | None) -> list[str] | None:
        flows = decided(asked, offer, placing(get_solver(name), paths=paths)).flows
        return flows[0].path if flows else None

    assert path(None) is None
    assert path(2) == list("adcb")


def test_only_jobs_that_have_their_place_are_revised() -> None:
    leaving = running("j", flow(1, "ab", 50), state=JobState.RESCHEDULING)
    assert changes([leaving], broken("ab")) == []


def test_what_is_left_of_a_measured_link_is_whole_bits_and_no_more() -> None:
    slow = [
        link.model_copy(update={"measured": 33_333_333}) if (link.src, link.dst) == ("a", "b") else link
        for link in RING
    ]
    three = [running(name, flow(n, "ab", 30)) for n, name in enumerate("jkl", 1)]
    total = sum(plan.rate for _, _, flows in changes(three, slow) for plan in flows if plan.path == ["a", "b"])
    assert 31_666_663 <= total <= 31_666_666


def test_a_look_at_each_flow_is_needless_only_where_all_are_sound() -> None:
    remembering = Soundness()
    over_b, over_d = running("j", flow(1, "abc", 20)), running("k", flow(2, "adc", 80, high=90))
    slow = [link.model_copy(update={"measured": 50 * MBIT}) if link.src == "a" else link for link in RING]
    for jobs, links, sound in [
        ([over_b, over_d], RING, True),
        ([over_b, over_d], broken("bc"), False),
        ([over_b, over_d], broken("bc"), False),
        ([over_d], broken("bc"), True),
        ([over_b, over_d], RING, True),
        ([over_b, over_d], slow, False),
        ([over_b], slow, True),
        ([running("j", flow(1, "abc", 0))], broken("bc"), True),
        ([over_b, over_d], broken("dc"), False),
        ([over_b, running("k", flow(2, "abc", 20))], broken("dc"), True),
    ]:
        view = view_of(NODES, links, jobs)
        offer = offer_of(view)
        every = revisable_flows(view, offer)
        assert remembering.holds(view, offer) is sound is not (every.broken or every.crowded)
