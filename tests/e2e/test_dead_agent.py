"""An agent that is killed and stays dead past the lease, while its node lives: its workers end by themselves before
anyone starts them elsewhere, unless they were told to keep going."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fault_cluster import FaultCluster, recorded_job, running, star, wait_for

from ces_testbed.spec import Timing

TIMING = Timing(lease_s=7, lease_margin_s=3, unreachable_s=4)


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    """A cluster with short leases."""
    with running("fltd", tmp_path_factory.mktemp("fltd"), star(3), timing=TIMING) as tested:
        yield tested
        tested.check()


def at(node: str, job: dict[str, object]) -> dict[str, object]:
    job["tasks"][0]["constraints"] = {"labels": {"host": node}}
    return job


def test_an_agent_that_stays_dead_past_the_lease(short: FaultCluster) -> None:
    moved = short.submit(recorded_job("moves", 18, "stubborn", replicas=3, disconnect="stop"))
    node = short.await_state(moved, "running").placement[0].node
    assert node is not None
    kept = short.submit(at(node, recorded_job("keeps", 30, replicas=2, disconnect="keep")))
    short.await_state(kept, "running")
    wait_for(lambda: len(short.worker_pids(kept)) == 2, "the keeping workers live")
    keeping = short.worker_pids(kept)

    short.cluster.kill(f"agent-{node}", stay_down=True)
    wait_for(lambda: short.client.jobs.get(moved).attempt == 2, "the job is rescheduled")
    after = short.await_state(moved, "running", "succeeded")
    assert node not in {task.node for task in after.placement}
    assert short.worker_pids(kept) == keeping
    view = short.finish(moved)
    assert view.restarts == 0
    allocations = short.books(finished=False).allocations
    lives = [(allocations[life.allocation], life) for life in short.lives(moved)]
    orphaned = [life for allocation, life in lives if allocation.node == node]
    second = [life for allocation, life in lives if allocation.attempt == 2]
    assert orphaned
    assert len(second) == 3
    assert max(life.end for life in orphaned) < min(life.start for life in second)

    short.cluster.restart(f"agent-{node}")
    short.finish(short.submit(at(node, recorded_job("again", 0.5, replicas=1))))
    view = short.finish(kept)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in short.lives(kept)] == [1, 1]


def test_an_agent_that_is_back_before_anyone_missed_it_says_that_the_lease_had_run_out(short: FaultCluster) -> None:
    """Between the end of the lease and the manager's margin: the job starts anew, and has not failed."""
    job = short.submit(recorded_job("lapses", 12, replicas=1, restart={"policy": "never"}, disconnect="stop"))
    node = short.await_state(job, "running").placement[0].node
    wait_for(lambda: short.worker_pids(job) != [], "its worker lives")
    (before,) = short.worker_pids(job)
    short.cluster.kill(f"agent-{node}", stay_down=True)
    wait_for(lambda: before not in short.worker_pids(job), "its worker has ended")
    short.cluster.restart(f"agent-{node}")
    view = short.finish(job)
    assert (view.attempt, view.restarts) == (2, 0)
    first, second = short.lives(job)
    assert first.end < second.start


def test_a_worker_that_outlives_the_lease_ends_that_much_later_and_then_its_job_moves(short: FaultCluster) -> None:
    lasting = short.submit(recorded_job("lasts", 20, replicas=1, disconnect="8s"))
    node = short.await_state(lasting, "running").placement[0].node
    assert node is not None
    strict = short.submit(at(node, recorded_job("strict", 30, replicas=1, disconnect="stop")))
    short.await_state(strict, "running")
    wait_for(lambda: len(short.worker_pids(lasting)) == 1, "its worker lives")
    (before,) = short.worker_pids(lasting)

    short.cluster.kill(f"agent-{node}", stay_down=True)
    wait_for(lambda: short.client.jobs.get(strict).attempt == 2, "the strict job has left the node")
    assert short.client.jobs.get(lasting).attempt == 1
    assert before in short.worker_pids(lasting)
    wait_for(lambda: short.client.jobs.get(lasting).attempt == 2, "so has the lasting one")
    assert before not in short.worker_pids(lasting)
    short.client.jobs.cancel(strict)
    view = short.finish(lasting)
    assert view.placement[0].node != node
    first, second = short.lives(lasting)
    assert first.end < second.start
    short.cluster.restart(f"agent-{node}")
