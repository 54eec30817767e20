"""Nodes whose owners have them back, and lend them again."""

from __future__ import annotations

import json

import pytest
from manager_world import World, ring
from sqlalchemy import select

from ces_common.db.tables import EventRow
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.states import AllocationState, JobState
from ces_manager.errors import Conflict, NotFound
from ces_manager.nodes import owners
from ces_manager.nodes.owners import LOANS_AT_ONCE, LOANS_PER_S, Loans
from ces_manager.nodes.rows import node_row

NODES = ["a", "b", "c", "d"]
J, A = JobState, AllocationState


def say(world: World, node: str, *, reclaimed: bool) -> None:
    world.write(lambda tx: owners.take_news(tx, {node: reclaimed}))


def changes(world: World) -> list[tuple[str, str]]:
    with world.uow.read() as tx:
        events = [json.loads(body) for body in tx.session.scalars(select(EventRow.body).order_by(EventRow.sequence))]
    found = [event["data"] for event in events if event["type"].endswith("node.changed")]
    return [(each["node"], each["change"]) for each in found if each["change"] in ("reclaimed", "lent")]


def test_jobs_leave_a_reclaimed_node_once_nothing_of_them_is_left_and_none_comes(world: World) -> None:
    job, other = world.submit(ring(tasks=2)), world.submit(ring(tasks=2))
    world.run(job, ["a", "b"])
    world.run(other, ["c", "d"])
    say(world, "a", reclaimed=True)
    record = world.job(job)
    assert (record.state, record.reason) == (J.RESCHEDULING, "node a is reclaimed by its owner")
    assert world.job(other).state is J.RUNNING
    assert world.commit(world.propose(world.submit(ring(tasks=1)), ["a"])) == "node a is reclaimed by its owner"
    world.confirm(job)
    assert (world.job(job).state, world.job(job).restarts) == (J.QUEUED, 0)
    world.run(job, ["b", "c"])
    say(world, "a", reclaimed=False)
    world.run(world.submit(ring(tasks=1)), ["a"])
    assert changes(world) == [("a", "reclaimed"), ("a", "lent")]


def test_what_is_known_already_changes_nothing(world: World) -> None:
    say(world, "a", reclaimed=False)
    say(world, "a", reclaimed=True)
    version = world.snapshot().version
    say(world, "a", reclaimed=True)
    say(world, "nobody", reclaimed=True)
    assert next(node for node in world.snapshot().nodes if node.name == "a").reclaimed
    assert next(node for node in world.snapshot().nodes if node.name == "a").version <= version
    assert changes(world) == [("a", "reclaimed")]


@pytest.mark.parametrize("code", [0, 137, 143])
def test_a_worker_that_the_owner_ended_is_gone_and_is_no_failure(world: World, code: int) -> None:
    job = world.submit(ring(tasks=2))
    world.run(job, ["a", "b"])
    first = world.job(job).allocations[0]
    ended = WorkerStatus(
        allocation=first.id, incarnation=1, state="exited", exit_code=code, reason="stopped: why", reclaimed=True
    )
    world.report(Status(node="a", generation=0, workers=[ended]))
    record = world.job(job)
    assert (record.state, record.restarts) == (J.RESCHEDULING, 0)
    assert [each.state for each in record.allocations] == [A.STOPPED, A.STOPPING]
    assert changes(world) == [("a", "reclaimed")], "it is, whatever its heartbeats say"
    assert world.commit(world.propose(world.submit(ring(tasks=1)), ["a"])) == "node a is reclaimed by its owner"
    world.report(Status(node="a", generation=0, workers=[ended]))
    world.confirm(job)
    assert world.job(job).state is J.QUEUED
    say(world, "a", reclaimed=False)
    assert not world.report(Status(node="a", generation=0, workers=[ended])), "what is over takes nothing back"


def test_a_node_speaks_of_itself_alone(world: World) -> None:
    """The allocation that it names is another node's."""
    job = world.submit(ring(tasks=1))
    world.run(job, ["a"])
    ended = WorkerStatus(
        allocation=world.job(job).allocations[0].id, incarnation=1, state="exited", exit_code=0, reclaimed=True
    )
    world.report(Status(node="b", generation=0, workers=[ended]))
    assert world.job(job).state is J.RUNNING


def test_a_job_that_has_not_started_yet_leaves_at_once(world: World) -> None:
    job = world.submit(ring(tasks=2))
    assert world.commit(world.propose(job, ["a", "b"])) is None
    say(world, "a", reclaimed=True)
    assert world.job(job).state is J.QUEUED


def test_a_node_that_goes_to_and_fro_is_believed_less_and_less_when_it_lends() -> None:
    loans = Loans()
    taken = [loans.takes("a", known=True, told=False, now=0.0) for _ in range(LOANS_AT_ONCE + 3)]
    assert taken == [True] * LOANS_AT_ONCE + [False] * 3
    assert loans.takes("a", known=False, told=True, now=0.0), "a reclaim always counts"
    assert loans.takes("b", known=True, told=False, now=0.0)
    assert not loans.takes("b", known=True, told=True, now=0.0), "nothing new"
    assert loans.takes("a", known=True, told=False, now=1 / LOANS_PER_S + 0.001)


def test_only_a_node_that_is_there_can_be_told(world: World) -> None:
    def check(node: str) -> None:
        with world.uow.read() as tx:
            owners.check_reachable(tx, node)

    check("a")
    world.write(lambda tx: setattr(node_row(tx, "a"), "state", "unreachable"))
    with pytest.raises(Conflict, match="ces-agent reclaim"):
        check("a")
    with pytest.raises(NotFound):
        check("nobody")
