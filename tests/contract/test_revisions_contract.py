"""Other bandwidth and paths for flows of jobs that have their place, on both databases: all of a revision or none."""

from collections.abc import Iterator

import pytest
from manager_world import World, ring
from meshed_world import meshed_world
from sqlalchemy.engine import URL

from ces_common.db.tables import EventRow
from ces_common.messages.events import parse_event
from ces_common.messages.plans import FlowPlan, JobRevision, PlanRevised, RevisionProposed, RevisionRejected, ShortFlow
from ces_common.messages.reports import LinkReport, LinkStatus
from ces_common.states import JobState
from ces_manager.network import link_states
from ces_manager.plans import revision

MBIT = 1_000_000
NODES = ["a", "b", "c"]


@pytest.fixture
def world(url: URL) -> Iterator[World]:
    """Links of 100 Mbit/s, of which 95 may be reserved."""
    with meshed_world(url, *NODES) as made:
        yield made


def two(world: World, name: str = "two") -> str:
    """Two tasks on a and b that talk both ways, 10 to 90 Mbit/s, and have 10."""
    job = world.submit(ring(name, tasks=2, high="90Mbit"))
    world.run(job, ["a", "b"])
    return job


def flow(bandwidth: int, path: str = "ab", src: str = "w-0", dst: str = "w-1") -> FlowPlan:
    return FlowPlan(src=src, dst=dst, rate=bandwidth * MBIT, path=list(path))


def held(world: World, job: str) -> dict[str, int]:
    return {"".join(each.path): each.rate // MBIT for each in world.job(job).reserved}


def break_link(world: World, src: str, dst: str) -> None:
    report = LinkReport(node=src, links=[LinkStatus(peer=dst, state="down", reason="cut")])
    world.write(lambda tx: link_states.take_reports(tx, [report]))


def last_event(world: World) -> object:
    with world.uow.read() as tx:
        return parse_event(tx.session.query(EventRow).order_by(EventRow.sequence.desc()).first().body.encode()).data


def stale(world: World) -> bool:
    told = last_event(world)
    assert isinstance(told, RevisionRejected)
    return told.stale


def test_a_flow_gets_another_path_and_nothing_else_of_its_job_changes(world: World) -> None:
    job = two(world)
    before = world.job(job)
    assert world.revise(job, flow(60, "acb")) is None
    after = world.job(job)
    assert held(world, job) == {"acb": 60, "ba": 10}
    assert (after.state, after.attempt, after.allocations) == (before.state, before.attempt, before.allocations)
    assert [each.number for each in after.reserved] == [each.number for each in before.reserved]
    assert after.version > before.version, "readers that follow by changes see it"
    told = last_event(world)
    assert isinstance(told, PlanRevised)
    assert [(each.path, each.rate) for each in told.flows] == [(["a", "c", "b"], 60 * MBIT)]
    assert told.short == []


def test_what_the_flow_itself_holds_is_room_for_it(world: World) -> None:
    job = two(world)
    assert world.revise(job, flow(90)) is None
    assert world.revise(job, flow(80)) is None
    assert held(world, job) == {"ab": 80, "ba": 10}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (flow(96), "outside of"),
        (flow(9), "outside of"),
        (flow(50, "ac"), "does not lead"),
        (flow(50, "abab"), "passes a node twice"),
        (flow(50, "adb"), "does not exist"),
        (flow(50, src="w-0", dst="w-7"), "has no flow"),
    ],
)
def test_what_a_job_did_not_ask_for_is_rejected(world: World, change: FlowPlan, reason: str) -> None:
    job = two(world)
    assert reason in (world.revise(job, change) or "")
    assert held(world, job) == {"ab": 10, "ba": 10}


def test_all_of_a_revision_or_none_of_it(world: World) -> None:
    one, other = two(world, "one"), two(world, "other")
    version = world.snapshot().version

    def both(first: int, second: int) -> str | None:
        parts = [JobRevision(job=job, attempt=1, flows=[flow(rate)]) for job, rate in ((one, first), (other, second))]
        asked = RevisionProposed(revision=f"r{first}", version=version, cause="room", jobs=parts)
        return world.write(lambda tx: revision.commit_revision(tx, asked))

    assert "has 95 Mbit/s left, the plan asks for 96 Mbit/s" in (both(80, 16) or "")
    assert held(world, one) == held(world, other) == {"ab": 10, "ba": 10}
    assert both(80, 15) is None
    assert held(world, one) == {"ab": 80, "ba": 10}


def test_a_job_that_has_changed_meanwhile_is_left_alone(world: World) -> None:
    job = two(world)
    version = world.snapshot().version
    assert world.revise(job, flow(20)) is None
    assert "has changed since" in (world.revise(job, flow(30), version=version) or "")
    assert stale(world)
    assert "outside of" in (world.revise(job, flow(96)) or "")
    assert not stale(world), "what does not fit must not be taken for that"
    world.cancel(job)
    assert "has no place" in (world.revise(job, flow(30)) or "")
    assert stale(world)


def test_less_than_the_minimum_only_where_the_path_fails(world: World) -> None:
    job = two(world)
    assert "outside of" in (world.revise(job, flow(5)) or "")
    break_link(world, "a", "b")
    assert "is down" in (world.revise(job, flow(5)) or "")
    # The audit at the end knows of no flow below its minimum: it must get there again.
    assert world.revise(job, flow(5, "acb")) is None
    told = last_event(world)
    assert isinstance(told, PlanRevised)
    assert told.short == [ShortFlow(src="w-0", dst="w-1", min=10 * MBIT, rate=5 * MBIT)]
    assert world.job(job).state is JobState.RUNNING
    assert world.revise(job, flow(10, "acb")) is None
    assert "outside of" in (world.revise(job, flow(5, "acb")) or "")


def test_without_a_way_a_flow_stays_where_it_was_and_holds_nothing(world: World) -> None:
    job = two(world)
    for peer in "bc":
        break_link(world, "a", peer)
    assert world.revise(job, flow(0)) is None
    assert held(world, job) == {"ab": 0, "ba": 10}
    assert "is down" in (world.revise(job, flow(10)) or "")
    report = LinkReport(node="a", links=[LinkStatus(peer="b", state="up")])
    world.write(lambda tx: link_states.take_reports(tx, [report]))
    assert world.revise(job, flow(10)) is None
