"""Jobs are counted as they pass on, once that is committed."""

from __future__ import annotations

import pytest
from manager_world import World, full_mesh, ring
from prometheus_client import REGISTRY

from ces_manager.jobs import commands
from ces_manager.jobs.lifecycle import Cause
from ces_manager.nodes import operations


def value(name: str, **labels: str) -> float:
    found = REGISTRY.get_sample_value(name, labels)
    return 0.0 if found is None else found


def placed(world: World) -> str:
    job = world.submit(ring())
    assert world.commit(world.propose(job, ["a", "b", "c"])) is None
    return job


def test_the_wait_in_the_queue_ends_with_the_plan(world: World) -> None:
    count, total = value("ces_job_queue_wait_seconds_count"), value("ces_job_queue_wait_seconds_sum")
    job = world.submit(ring())
    world.wait(30)
    assert value("ces_job_queue_wait_seconds_count") == count
    assert world.commit(world.propose(job, ["a", "b", "c"])) is None
    assert value("ces_job_queue_wait_seconds_count") == count + 1
    assert value("ces_job_queue_wait_seconds_sum") == total + 30


def test_a_phase_is_timed_when_it_is_left(world: World) -> None:
    job, before = placed(world), value("ces_job_phase_seconds_sum", state="planned")
    world.wait(4)
    ended = value("ces_jobs_finished_total", state="cancelled")
    world.write(lambda tx: commands.cancel_job(tx, job))
    assert value("ces_job_phase_seconds_sum", state="planned") == before + 4
    assert value("ces_jobs_finished_total", state="cancelled") == ended + 1


def test_what_is_undone_was_never_counted(world: World) -> None:
    job, before = placed(world), value("ces_jobs_finished_total", state="cancelled")

    def undone(tx: object) -> None:
        commands.cancel_job(tx, job)  # type: ignore[arg-type]
        raise RuntimeError("undo it")

    with pytest.raises(RuntimeError, match="undo it"):
        world.write(undone)
    assert value("ces_jobs_finished_total", state="cancelled") == before


@pytest.mark.parametrize("cause", [Cause.DRAINED, Cause.TOPOLOGY, Cause.NODE_LOST])
def test_why_a_job_leaves_is_counted(world: World, cause: Cause) -> None:
    placed(world)
    before = {each: value("ces_jobs_rescheduled_total", cause=each) for each in Cause}
    match cause:
        case Cause.DRAINED:
            world.write(lambda tx: operations.drain(tx, "a"))
        case Cause.TOPOLOGY:
            world.put_topology(full_mesh(["a", "b"]))
        case _:
            world.look()
            world.wait(2 * world.timeouts.lease_s + 600)
            world.beat("b", "c")
            world.expire()
    after = {each: value("ces_jobs_rescheduled_total", cause=each) for each in Cause}
    assert {each: after[each] - before[each] for each in Cause if after[each] != before[each]} == {cause: 1}


def test_every_cause_is_there_before_it_first_comes_about() -> None:
    """Or the first would be no increase to Prometheus."""
    for cause in Cause:
        assert REGISTRY.get_sample_value("ces_jobs_rescheduled_total", {"cause": cause}) is not None
