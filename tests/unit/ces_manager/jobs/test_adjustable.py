"""Which jobs have anything to be adjusted for, and what is known of moving their tasks."""

from __future__ import annotations

from datetime import timedelta

import pytest
from manager_world import World, ring
from moved_tasks import apart, ask, gone, laid, place, says, state
from sqlalchemy import select

from ces_common.db.move_tables import MoveRow
from ces_manager.errors import Conflict
from ces_manager.jobs.adjustable import check_adjustable

GOALS = {"objective": {"balance": 1.0}}


def known(world: World, job: str) -> dict[str, float]:
    with world.uow.read() as tx:
        return check_adjustable(tx, job)


def test_what_a_move_took_is_known_of_its_task(world: World) -> None:
    job = world.submit(apart(**GOALS))
    world.run(job, ["a", "b"])
    assert known(world, job) == {}
    for node, seconds in (("c", 7), ("a", 4)):
        old = place(world, job, "w-0")
        ask(world, job, "w-0", node)
        with pytest.raises(Conflict, match="a task of job apart is being moved; try again when it is there"):
            known(world, job)
        laid(world, job)
        gone(world, old)
        world.wait(seconds)
        says(world, place(world, job, "w-0"), "running")
        assert state(world, job) == "done"
        assert known(world, job) == {"w-0": seconds}


@pytest.mark.parametrize(("seconds", "told"), [(-5.0, 0.0), (3600.0, 3600.0), (3601.0, None)])
def test_a_clock_set_back_and_a_copy_that_waited_for_its_node(world: World, seconds: float, told: float | None) -> None:
    job = world.submit(apart(**GOALS))
    world.run(job, ["a", "b"])
    old = place(world, job, "w-0")
    ask(world, job, "w-0", "c")
    laid(world, job)
    gone(world, old)
    says(world, place(world, job, "w-0"), "running")
    with world.uow.write(world.now) as tx:
        (move,) = tx.session.scalars(select(MoveRow).where(MoveRow.job == job))
        move.changed_at = move.began_at + timedelta(seconds=seconds)
    assert known(world, job) == ({} if told is None else {"w-0": told})


def test_the_usual_weights_without_requests_are_no_goals(world: World) -> None:
    usual = world.submit(apart(objective={"balance": 0.5, "bandwidth": 0.5}))
    world.run(usual, ["a", "b"])
    with pytest.raises(Conflict, match="its file has no `requests`, and its `objective` weighs `balance` and"):
        known(world, usual)


def test_a_job_that_is_not_adjusted_is_refused_with_what_is_in_the_way(world: World) -> None:
    plain = world.submit(apart("plain"))
    with pytest.raises(Conflict, match="job plain has no goals to be adjusted for: its file has neither `requests`"):
        known(world, plain)
    waits = world.submit(ring("waits", **GOALS))
    with pytest.raises(Conflict, match="job waits is queued; only a running job is adjusted"):
        known(world, waits)
