"""Which jobs have anything to be adjusted for, and what is known of moving their tasks."""

from __future__ import annotations

import pytest
from manager_world import World, ring
from moved_tasks import apart, ask, gone, laid, place, says, state

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


def test_a_job_that_is_not_adjusted_is_refused_with_what_is_in_the_way(world: World) -> None:
    plain = world.submit(apart("plain"))
    with pytest.raises(Conflict, match="job plain has no goals to be adjusted for: its file has neither `requests`"):
        known(world, plain)
    waits = world.submit(ring("waits", **GOALS))
    with pytest.raises(Conflict, match="job waits is queued; only a running job is adjusted"):
        known(world, waits)
