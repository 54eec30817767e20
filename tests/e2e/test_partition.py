"""A node that is cut off for longer than its lease: its workers end before anyone starts them elsewhere, unless they
were told to keep going."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fault_cluster import FaultCluster, recorded_job, running, star, wait_for

from ces_testbed.spec import Timing

pytestmark = pytest.mark.needs("root")
SHORT = Timing(lease_s=7, lease_margin_s=3, unreachable_s=4)
LONG = Timing(lease_s=40, lease_margin_s=3, unreachable_s=4)


@pytest.fixture
def cut(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[FaultCluster]:
    """A cluster with the timing that the test asks for."""
    with running("fltp", tmp_path_factory.mktemp("fltp"), star(3), timing=request.param) as tested:
        yield tested
        tested.check()


def node_state(cluster: FaultCluster, name: str) -> str:
    return next(node.state for node in cluster.client.nodes.list() if node.name == name)


@pytest.mark.parametrize("cut", [SHORT], indirect=True, ids=["short"])
def test_a_node_cut_off_past_its_lease(cut: FaultCluster) -> None:
    hosts = cut.cluster.hosts
    moved = cut.submit(recorded_job("moves", 8, "stubborn", replicas=3, disconnect="stop"))
    node = cut.await_state(moved, "running").placement[0].node
    assert node is not None
    keep = recorded_job("keeps", 22, replicas=2, disconnect="keep")
    keep["tasks"][0]["constraints"] = {"labels": {"host": node}}
    kept = cut.submit(keep)
    cut.await_state(kept, "running")
    wait_for(lambda: len(cut.worker_pids(kept)) == 2, "the keeping workers live")
    pids = cut.worker_pids(kept)

    hosts.partition(node)
    wait_for(lambda: cut.client.jobs.get(moved).attempt == 2, "the job is rescheduled")
    after = cut.await_state(moved, "running", "succeeded")
    assert node not in {task.node for task in after.placement}
    assert node_state(cut, node) == "unreachable"
    assert cut.worker_pids(kept) == pids
    assert cut.client.jobs.get(kept).attempt == 1

    cut.finish(moved)
    allocations = cut.books(finished=False).allocations
    lives = [(allocations[life.allocation], life) for life in cut.lives(moved)]
    cut_off = [life for allocation, life in lives if allocation.node == node]
    second = [life for allocation, life in lives if allocation.attempt == 2]
    assert cut_off
    assert len(second) == 3
    assert max(life.end for life in cut_off) < min(life.start for life in second)

    hosts.heal(node)
    wait_for(lambda: node_state(cut, node) == "ready", "the node is back")
    again = recorded_job("again", 0.5, replicas=1)
    again["tasks"][0]["constraints"] = {"labels": {"host": node}}
    cut.finish(cut.submit(again))
    view = cut.finish(kept)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in cut.lives(kept)] == [1, 1]


@pytest.mark.parametrize("cut", [LONG], indirect=True, ids=["long"])
def test_a_short_cut_is_nobodys_business(cut: FaultCluster) -> None:
    job = cut.submit(recorded_job("short-cut", 8, replicas=3, disconnect="stop"))
    node = cut.await_state(job, "running").placement[0].node
    assert node is not None
    cut.cluster.hosts.partition(node)
    wait_for(lambda: node_state(cut, node) == "unreachable", "its silence is noticed")
    cut.cluster.hosts.heal(node)
    view = cut.finish(job)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in cut.lives(job)] == [1, 1, 1]
