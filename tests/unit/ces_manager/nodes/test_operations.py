"""Draining and cordoning nodes."""

from __future__ import annotations

import pytest
from manager_world import World, ring

from ces_common.states import AllocationState, JobState
from ces_manager.errors import NotFound
from ces_manager.nodes import operations

NODES = ["a", "b", "c", "d"]


J, A = JobState, AllocationState


def test_draining_moves_jobs_and_admits_no_more(world: World) -> None:
    job = world.submit(ring())
    world.run(job, NODES)
    world.write(lambda tx: operations.drain(tx, "a"))
    assert world.job(job).state is J.RESCHEDULING
    world.confirm(job)
    assert world.commit(world.propose(job, NODES)) == "node a is cordoned"
    assert world.commit(world.propose(job, NODES[1:])) is None
    world.write(lambda tx: operations.uncordon(tx, "a"))
    assert world.commit(world.propose(world.submit(ring(tasks=1)), ["a"])) is None
    with pytest.raises(NotFound):
        world.write(lambda tx: operations.drain(tx, "nobody"))
