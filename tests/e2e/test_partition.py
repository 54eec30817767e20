"""A node that is cut off for longer than its lease: its workers end before anyone starts them elsewhere, unless they
were told to keep going."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fault_cluster import FaultCluster, recorded_job, running, star, wait_for

from ces_testbed.spec import Timing

pytestmark = pytest.mark.needs("root")
TIMING = Timing(lease_s=7, lease_margin_s=3, unreachable_s=4)


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    """A cluster with short leases."""
    with running("fltp", tmp_path_factory.mktemp("fltp"), star(3), timing=TIMING) as tested:
        yield tested
        tested.check()


def node_state(cluster: FaultCluster, name: str) -> str:
    return next(node.state for node in cluster.client.nodes.list() if node.name == name)


def test_a_node_cut_off_past_its_lease(short: FaultCluster) -> None:
    hosts = short.cluster.hosts
    moved = short.submit(recorded_job("moves", 8, "stubborn", replicas=3))
    node = short.await_state(moved, "running").placement[0].node
    assert node is not None
    keep = recorded_job("keeps", 22, replicas=2, disconnect="keep")
    keep["tasks"][0]["constraints"] = {"labels": {"host": node}}
    kept = short.submit(keep)
    short.await_state(kept, "running")
    wait_for(lambda: len(short.worker_pids(kept)) == 2, "the keeping workers live")
    pids = short.worker_pids(kept)

    hosts.partition(node)
    wait_for(lambda: short.client.jobs.get(moved).attempt == 2, "the job is rescheduled")
    after = short.await_state(moved, "running", "succeeded")
    assert node not in {task.node for task in after.placement}
    assert node_state(short, node) == "unreachable"
    assert short.worker_pids(kept) == pids
    assert short.client.jobs.get(kept).attempt == 1

    short.finish(moved)
    allocations = short.books(finished=False).allocations
    lives = [(allocations[life.allocation], life) for life in short.lives(moved)]
    cut_off = [life for allocation, life in lives if allocation.node == node]
    second = [life for allocation, life in lives if allocation.attempt == 2]
    assert cut_off
    assert len(second) == 3
    assert max(life.end for life in cut_off) < min(life.start for life in second)

    hosts.heal(node)
    wait_for(lambda: node_state(short, node) == "ready", "the node is back")
    again = recorded_job("again", 0.5, replicas=1)
    again["tasks"][0]["constraints"] = {"labels": {"host": node}}
    short.finish(short.submit(again))
    view = short.finish(kept)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in short.lives(kept)] == [1, 1]


def test_a_short_cut_is_nobodys_business(short: FaultCluster) -> None:
    job = short.submit(recorded_job("short-cut", 8, replicas=3))
    node = short.await_state(job, "running").placement[0].node
    assert node is not None
    short.cluster.hosts.partition(node)
    wait_for(lambda: node_state(short, node) == "unreachable", "its silence is noticed")
    short.cluster.hosts.heal(node)
    view = short.finish(job)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in short.lives(job)] == [1, 1, 1]
