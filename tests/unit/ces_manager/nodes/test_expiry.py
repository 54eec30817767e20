"""What time alone brings about: silent nodes, ended leases, missed deadlines."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from manager_world import START, World, ring
from sqlalchemy import update

from ces_common.db.tables import LeaseRow
from ces_common.db.uow import WriteTx
from ces_common.states import AllocationState, JobState
from ces_manager.errors import Conflict
from ces_manager.jobs import commands
from ces_manager.nodes import expiry, heartbeats
from ces_manager.nodes.expiry import Due, what_is_due
from ces_manager.nodes.failure_detector import FailureDetector

NODES = ["a", "b", "c", "d"]


J, A = JobState, AllocationState


NOTHING = Due()


def node_states(world: World) -> dict[str, str]:
    return {node.name: node.state for node in world.snapshot().nodes}


def test_a_silent_node_gets_no_work_until_it_is_heard(world: World) -> None:
    assert world.expire() == NOTHING
    world.wait(world.timeouts.unreachable_after_s + 1)
    world.beat("a", "b", "c")
    assert world.expire().silent == ["d"]
    assert node_states(world)["d"] == "unreachable"
    job = world.submit(ring(tasks=1))
    assert world.commit(world.propose(job, ["d"])) == "node d is unreachable"
    assert world.expire() == NOTHING
    assert world.beat("d", "stranger") == {"stranger"}
    assert node_states(world)["d"] == "ready"
    assert world.commit(world.propose(job, ["d"])) is None


def test_a_job_moves_only_when_the_lease_and_the_margin_have_passed(world: World) -> None:
    job = world.submit(ring(disconnect="stop"))
    world.run(job, NODES)
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s)
    world.beat("a", "b", "d")
    assert world.expire() == Due(silent=["c"])
    assert world.job(job).state is J.RUNNING
    world.wait(1)
    assert world.expire().lost == ["c"]
    record = world.job(job)
    assert record.state is J.RESCHEDULING
    assert [a.state for a in record.allocations] == [A.STOPPING, A.STOPPING, A.LOST]
    world.confirm(job)
    record = world.job(job)
    assert (record.state, record.attempt) == (J.QUEUED, 2)
    assert record.reason == "node c was not heard for longer than its lease"
    world.run(job, ["a", "b", "d"])
    assert world.expire() == NOTHING


def test_a_stopping_allocation_is_released_when_its_node_is_lost(world: World) -> None:
    job = world.submit(ring(tasks=1, disconnect="stop"))
    world.run(job, ["a"])
    world.cancel(job)
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 1)
    world.beat("b", "c", "d")
    world.expire()
    assert world.job(job).state is J.CANCELLED
    assert world.job(job).released
    assert world.snapshot().jobs == []


def test_a_job_that_keeps_running_is_never_moved_behind_its_back(world: World) -> None:
    job = world.submit(ring(disconnect="keep"))
    world.run(job, NODES)
    world.wait(10 * world.timeouts.lease_s)
    assert world.expire() == Due(silent=NODES)
    assert world.job(job).state is J.RUNNING
    assert world.expire() == NOTHING
    world.beat(*NODES)
    world.tell(job, "exited", exit_code=0)
    assert world.job(job).state is J.SUCCEEDED


def test_a_job_that_outlives_the_lease_is_moved_that_much_later(world: World) -> None:
    strict = world.submit(ring("strict", tasks=1, disconnect="stop"))
    lasting = world.submit(ring("lasting", tasks=1, disconnect="5m"))
    for job in (strict, lasting):
        world.run(job, ["a"])
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 1)
    world.beat("b", "c", "d")
    assert world.expire().lost == ["a"]
    assert (world.job(strict).state, world.job(lasting).state) == (J.QUEUED, J.RUNNING)
    world.wait(298)
    world.beat("b", "c", "d")
    assert world.expire() == NOTHING
    with pytest.raises(Conflict, match="its work ends in 1 s"):
        world.forget("a")
    world.wait(2)
    world.beat("b", "c", "d")
    assert world.expire().lost == ["a"]
    record = world.job(lasting)
    assert (record.state, record.attempt) == (J.QUEUED, 2)
    assert record.reason == "node a was not heard for longer than its lease and 5m"


def test_a_centre_that_was_away_for_five_minutes_takes_nothing_from_a_job_that_outlives_the_lease(world: World) -> None:
    job = world.submit(ring(disconnect="5m"))
    world.run(job, NODES)
    world.wait(300)
    world.restart()
    assert world.expire() == NOTHING
    world.beat(*NODES)
    world.wait(world.timeouts.unreachable_after_s)
    assert world.expire() == NOTHING
    assert world.job(job).state is J.RUNNING


def test_a_state_that_outlives_its_deadline_is_given_up_a_few_times(world: World) -> None:
    job = world.submit(ring())
    for attempt in range(1, world.timeouts.max_late + 1):
        assert world.job(job).attempt == attempt
        assert world.commit(world.propose(job, NODES)) is None
        world.wait(world.timeouts.planned_s * 2 ** (attempt - 1) - 1)
        world.beat(*NODES)
        assert world.expire() == NOTHING
        world.wait(2)
        assert list(world.expire().late) == [job]
    record = world.job(job)
    assert record.state is J.FAILED
    assert record.reason == "planned for more than 240 s, the 3. deadline missed in a row"
    assert record.released


def test_deadlines_are_counted_only_in_a_row(world: World) -> None:
    job = world.submit(ring())
    for missed in range(2):
        assert world.commit(world.propose(job, NODES)) is None
        world.network(job)
        world.wait(world.timeouts.starting_s * 2**missed + 1)
        world.beat(*NODES)
        world.expire()
        world.confirm(job)
    world.run(job, NODES)
    world.wait(10 * world.timeouts.starting_s)
    world.beat(*NODES)
    assert world.expire() == NOTHING
    world.tell(job, "exited", "w-0", exit_code=1)
    world.wait(world.timeouts.starting_s + 1)
    world.beat(*NODES)
    assert list(world.expire().late) == [job]
    assert world.job(job).state is J.RESCHEDULING


def test_a_restart_gets_its_own_time_to_start(world: World) -> None:
    job = world.submit(ring())
    assert world.commit(world.propose(job, NODES)) is None
    world.network(job)
    world.wait(world.timeouts.starting_s - 1)
    world.tell(job, "exited", "w-0", exit_code=1)
    world.wait(2)
    world.beat(*NODES)
    assert world.expire() == NOTHING
    assert world.job(job).state is J.STARTING


@pytest.mark.parametrize("step", [timedelta(days=400), timedelta(days=-400)])
def test_a_clock_that_is_set_ends_no_lease_and_no_wait(world: World, step: timedelta) -> None:
    job, waiting = world.submit(ring(disconnect="stop")), world.submit(ring(disconnect="stop"))
    world.run(job, NODES)
    assert world.commit(world.propose(waiting, NODES)) is None
    world.look()
    world.now += step
    assert world.expire() == NOTHING
    world.wait(world.timeouts.unreachable_after_s - 1)
    world.beat(*NODES)  # what is heard counts, whatever the time of day is now
    world.wait(world.timeouts.unreachable_after_s - 1)
    assert world.expire() == NOTHING
    assert world.job(job).state is J.RUNNING
    with world.uow.read() as tx:
        assert tx.session.get_one(LeaseRow, "a").heard_at.date() == (START + step).date()
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s)
    assert world.expire().lost == NODES[:3]


def test_a_restarted_manager_gives_everybody_a_whole_lease_again(world: World) -> None:
    job, waiting = world.submit(ring(tasks=1, disconnect="stop")), world.submit(ring(tasks=1, disconnect="stop"))
    world.run(job, ["a"])
    assert world.commit(world.propose(waiting, ["b"])) is None
    world.wait(10 * world.timeouts.lease_s)
    world.restart()
    assert world.expire() == NOTHING
    world.wait(world.timeouts.planned_s + 1)
    world.beat("b", "c", "d")
    due = world.expire()
    assert (due.silent, due.lost, list(due.late)) == (["a"], ["a"], [waiting])


def test_two_managers_judge_each_by_its_own_clock(world: World) -> None:
    """The clock of the second one is ahead by days; it sees what the first one wrote all the same."""
    world.run(world.submit(ring(tasks=1, disconnect="stop")), ["a"])

    def its_clock() -> float:
        return world.steady + 10**6

    other = FailureDetector(its_clock)

    def seen_by_the_other() -> Due:
        with world.uow.read() as tx:
            return what_is_due(tx, world.timeouts, other)

    assert seen_by_the_other() == NOTHING
    for _ in range(6):
        world.wait(world.timeouts.unreachable_after_s)
        world.beat(*NODES)
        assert seen_by_the_other() == NOTHING
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 1)
    assert seen_by_the_other() == Due(silent=NODES, lost=["a"])
    assert world.expire() == Due(silent=NODES, lost=["a"])
    assert seen_by_the_other() == NOTHING


@pytest.mark.parametrize("scope", ["task", "gang"])
def test_a_worker_that_does_not_start_again_is_not_waited_for_without_end(world: World, scope: str) -> None:
    job = world.submit(ring(restart={"scope": scope, "max": 9}))
    world.run(job, NODES)
    if scope == "gang":  # restarted while paused: nothing starts before it is resumed
        world.write(lambda tx: commands.pause_job(tx, job))
    world.tell(job, "exited", "w-1", exit_code=1)
    world.wait(world.timeouts.starting_s - 1)
    world.beat(*NODES)
    if scope == "gang":
        assert world.job(job).state is J.PAUSED
        world.wait(world.timeouts.starting_s)
        world.beat(*NODES)
        assert world.expire() == NOTHING
        world.write(lambda tx: commands.resume_job(tx, job))
        world.wait(world.timeouts.starting_s - 1)
        world.beat(*NODES)
    assert world.expire() == NOTHING
    world.wait(2)
    world.beat(*NODES)
    assert list(world.expire().late) == [job]
    record = world.job(job)
    assert record.state is J.RESCHEDULING
    name = "w-0 on a" if scope == "gang" else "w-1 on b"
    assert record.reason == f"{name} has not started again for more than {world.timeouts.starting_s:.0f} s"
    world.confirm(job)
    assert world.job(job).state is J.QUEUED


def test_each_start_of_a_worker_has_its_own_time(world: World) -> None:
    job = world.submit(ring(restart={"scope": "task", "max": 9}))
    world.run(job, NODES)
    world.tell(job, "exited", "w-0", exit_code=1)
    world.wait(world.timeouts.starting_s - 1)
    world.tell(job, "exited", "w-0", exit_code=1)
    world.tell(job, "exited", "w-2", exit_code=1)
    world.wait(2)
    world.beat(*NODES)
    assert world.expire() == NOTHING
    world.tell(job, "running", "w-0")
    world.wait(world.timeouts.starting_s)
    world.beat(*NODES)
    assert world.expire().late[job].why.startswith("w-2 on c")


def test_a_lost_node_starts_nothing_by_what_was_desired_before(world: World) -> None:
    job = world.submit(ring(tasks=1, disconnect="stop"))
    world.run(job, ["a"])
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 1)
    world.beat("b", "c", "d")
    assert world.expire().lost == ["a"]
    lost_at = world.snapshot().version
    assert {node.name: node.least_generation for node in world.snapshot().nodes} == dict.fromkeys("bcd", 0) | {
        "a": lost_at
    }
    granted = heartbeats.renew_leases(
        world.uow, [heartbeats.Asker("a", "again"), heartbeats.Asker("b", "b")], world.now
    )
    assert {name: known.least_generation for name, known in granted.items()} == {"a": lost_at, "b": 0}
    assert granted["a"].epoch == world.snapshot().epoch


def test_a_node_that_is_heard_after_the_look_is_not_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = world.submit(ring(tasks=1, disconnect="stop"))
    world.run(job, ["a"])
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 1)
    world.beat("b", "c", "d")
    looked = expiry.what_is_due

    def heard_just_then(*args: Any) -> Due:
        due = looked(*args)
        if isinstance(args[0], WriteTx):
            args[0].session.execute(update(LeaseRow).where(LeaseRow.node == "a").values(beats=LeaseRow.beats + 1))
        return due

    monkeypatch.setattr(expiry, "what_is_due", heard_just_then)
    assert world.expire().lost == []
    assert world.job(job).state is J.RUNNING


def test_a_site_is_lost_in_portions(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "LOST_AT_ONCE", 2)
    jobs = [world.submit(ring(f"j{node}", tasks=1, disconnect="stop")) for node in NODES]
    for job, node in zip(jobs, NODES, strict=True):
        world.run(job, [node])
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 1)
    assert [world.expire().lost for _ in range(3)] == [["a", "b"], ["c", "d"], []]
