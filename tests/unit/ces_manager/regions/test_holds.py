from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from manager_world import START, World, ring

from ces_common.messages.pieces import Piece
from ces_common.messages.region_holds import HoldList
from ces_common.messages.regions import HOLD_S, Decision, GuestJobQuery, HoldQuery, RemoteStatus, Reported
from ces_common.messages.split import PartAnswer, PartHoldQuery, PartReport, PartState, SplitDecision
from ces_common.queuefile import QueueFile
from ces_manager.jobs.job_views import job_view
from ces_manager.measurements import Measurements
from ces_manager.regions import away, guests, parts, splits
from ces_manager.regions.held import end_holds
from ces_manager.regions.holds import holds


def look(world: World, tenants: Collection[str] | None = None, most: int = 200) -> HoldList:
    with world.uow.read() as tx:
        return holds(tx, "here", tenants, most)


def hold(world: World, home_job: str = "job-1", tenant: str = "default") -> str:
    file = ring(tasks=2).model_copy(update={"tenant": tenant})
    asked = HoldQuery(home="r1", job=home_job, attempt=1, file=file)
    return world.write(lambda tx: guests.hold(tx, asked, QueueFile())).remote or ""


def word(job: str, home_job: str = "job-1") -> GuestJobQuery:
    return GuestJobQuery(home="r1", job=home_job, attempt=1, remote=job)


def fates(world: World) -> list[tuple[str, str]]:
    return [(each.state, each.job_state.value) for each in look(world).here]


def test_what_is_held_here_goes_from_waiting_to_committed(owner: World) -> None:
    job = hold(owner)
    [waits] = look(owner).here
    assert (waits.state, waits.region, waits.home_job, waits.attempt) == ("waiting", "r1", "job-1", 1)
    assert (waits.since, waits.ends) == (START, START + timedelta(seconds=HOLD_S))
    assert owner.commit(owner.propose(job, ["a", "b"])) is None
    assert fates(owner) == [("held", "planned")]
    owner.write(lambda tx: guests.commit(tx, word(job)))
    [committed] = look(owner).here
    assert (committed.state, committed.ends) == ("committed", None)
    owner.write(lambda tx: guests.release(tx, word(job)))
    assert fates(owner) == [("committed", "cancelled")], "it ran, for all that is known"


def test_what_nobody_committed_is_shown_as_released(owner: World) -> None:
    job = hold(owner)
    assert owner.commit(owner.propose(job, ["a", "b"])) is None
    owner.now += timedelta(seconds=HOLD_S)
    assert owner.write(end_holds) == 1
    [released] = look(owner).here
    assert (released.state, released.ends, released.finished_at) == ("released", None, owner.now)


def test_what_others_hold_is_known_from_the_decision_on(home: World) -> None:
    job = home.submit(ring(tasks=2, regions=["r2"]))
    assert look(home).there == []
    decision = Decision(job=job, attempt=1, region="r2", remote="01J0000000000000000REMOTE1")

    def report(fate: str, status: RemoteStatus | None = None) -> None:
        told = Reported.model_validate({**decision.model_dump(), "fate": fate, "status": status})
        home.write(lambda tx: away.take_reports(tx, [told]))

    home.write(lambda tx: away.decide(tx, decision))
    [held] = look(home).there
    assert (held.state, held.region, held.since, held.attempt) == ("held", "r2", START, 1)
    home.now += timedelta(seconds=1)
    report("committed")
    first = home.now
    home.now += timedelta(seconds=1)
    report("committed", RemoteStatus(state="running"))
    [committed] = look(home).there
    assert (committed.state, committed.remote_state, committed.job_state) == ("committed", "running", "elsewhere")
    with home.uow.read() as tx:
        view = job_view(tx, job, Measurements())
    assert (view.decided_at, view.committed_at) == (START, first)
    report("held")
    assert look(home).there[0].state == "held", "that region has lost the commit"


def test_what_was_given_up_before_it_was_committed_leaves_no_trace_of_that_try(home: World) -> None:
    job = home.submit(ring(tasks=2, regions=["r2"]))
    decision = Decision(job=job, attempt=1, region="r2", remote="01J0000000000000000REMOTE1")
    home.write(lambda tx: away.decide(tx, decision))
    told = Reported.model_validate({**decision.model_dump(), "fate": "released"})
    home.write(lambda tx: away.take_reports(tx, [told]))
    assert look(home).there == []
    with home.uow.read() as tx:
        view = job_view(tx, job, Measurements())
    assert (view.region, view.decided_at, view.committed_at) == (None, None, None)


def test_a_cancelled_one_that_was_never_committed_is_released(home: World) -> None:
    job = home.submit(ring(tasks=2, regions=["r2"]))
    decision = Decision(job=job, attempt=1, region="r2", remote="01J0000000000000000REMOTE1")
    home.write(lambda tx: away.decide(tx, decision))
    home.cancel(job)
    assert [each.state for each in look(home).there] == ["released"]


def test_each_tenant_sees_its_own(owner: World) -> None:
    mine, others = hold(owner, "job-1", "red"), hold(owner, "job-2", "blue")
    assert {each.job for each in look(owner).here} == {mine, others}
    assert [each.job for each in look(owner, ["red"]).here] == [mine]
    assert look(owner, []).here == []


def test_those_that_go_on_come_first_and_it_is_said_where_some_are_left_out(owner: World) -> None:
    *two, third = (hold(owner, f"job-{n}") for n in range(3))
    first, second = sorted(two)  # ids of one millisecond have no order among them
    owner.write(lambda tx: guests.release(tx, word(third, "job-2")))
    assert [each.job for each in look(owner).here] == [second, first, third]
    some = look(owner, most=2)
    assert ([each.job for each in some.here], some.more) == ([second, first], True)
    assert not look(owner, most=3).more


def test_a_part_of_a_split_job_is_held_as_a_part(owner: World) -> None:
    def hold_part(home: str, part: int) -> str:
        piece = Piece(tasks=["w-0", "w-1"])
        asked = PartHoldQuery(home=home, job="job-1", attempt=2, part=part, file=ring(tasks=2), piece=piece)
        return owner.write(lambda tx: parts.hold(tx, asked, QueueFile())).remote or ""

    job = hold_part("r1", 1)
    hold_part("here", 0)
    [held] = look(owner).here
    assert (held.job, held.region, held.part, held.attempt, held.state) == (job, "r1", 1, 2, "waiting")


def test_parts_of_a_split_job_that_others_hold_are_told_one_by_one(home: World) -> None:
    job = home.submit(ring(tasks=3, regions=["any"]))
    about = {"job": job, "attempt": 1}
    here = PartState(**about, part=0, remote=f"{1:026}", region="here", tasks=["w-0", "w-1"])
    far = PartState(**about, part=1, remote=f"{2:026}", region="far", tasks=["w-2"])
    home.write(lambda tx: splits.decide(tx, SplitDecision(**about, parts=[here, far], places=[])))
    [held] = look(home).there
    assert (held.job, held.region, held.part, held.state) == (job, "far", 1, "held")
    said = PartAnswer(fate="committed", status=RemoteStatus(state="running"))
    report = PartReport(**about, part=1, remote=far.remote, region="far", answer=said)
    home.write(lambda tx: splits.take_reports(tx, [report]))
    [committed] = look(home).there
    assert (committed.state, committed.remote_state) == ("committed", "running")
