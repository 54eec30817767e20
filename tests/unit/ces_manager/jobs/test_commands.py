"""Pausing and resuming jobs."""

from __future__ import annotations

import pytest
from manager_world import World, ring

from ces_common.states import AllocationState, JobState
from ces_manager.errors import Conflict, NotFound
from ces_manager.jobs import commands

NODES = ["a", "b", "c"]


J, A = JobState, AllocationState


def states(world: World, job: str) -> list[AllocationState]:
    return [allocation.state for allocation in world.job(job).allocations]


def test_pause_and_resume(world: World) -> None:
    job = world.submit(ring())
    with pytest.raises(Conflict):
        world.write(lambda tx: commands.pause_job(tx, job))
    world.run(job, NODES)
    world.write(lambda tx: commands.pause_job(tx, job))
    assert world.job(job).state is J.PAUSED
    world.tell(job, "paused")
    world.tell(job, "exited", "w-0", exit_code=1)
    assert world.job(job).state is J.PAUSED
    assert states(world, job) == [A.PENDING] * 3
    world.write(lambda tx: commands.resume_job(tx, job))
    world.tell(job, "running")
    world.write(lambda tx: commands.pause_job(tx, job))
    world.tell(job, "exited", exit_code=0)
    assert world.job(job).state is J.SUCCEEDED
    with pytest.raises(NotFound):
        world.write(lambda tx: commands.resume_job(tx, "nobody"))
