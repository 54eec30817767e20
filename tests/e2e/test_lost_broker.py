"""The broker forgets everything it ever stored: streams, consumers, desired state. The truth is elsewhere."""

from __future__ import annotations

import shutil

import pytest
from fault_cluster import FaultCluster, recorded_job


def wipe(cluster: FaultCluster) -> None:
    """Delete the broker's data while it is down."""
    cluster.cluster.kill("nats", stay_down=True)
    store = cluster.cluster.files.nats / "store"
    assert any(store.rglob("*.blk")), "there must be something to lose"
    shutil.rmtree(store)


@pytest.mark.parametrize("phase", ["planned", "running"])
def test_jobs_outlive_the_brokers_data(cluster: FaultCluster, phase: str) -> None:
    first = cluster.submit(recorded_job(f"forgotten-{phase}", 5))
    cluster.await_state(first, phase, "preparing", "starting", "running")
    wipe(cluster)
    second = cluster.submit(recorded_job(f"unheard-{phase}", 1))  # nobody can be told of it yet
    cluster.cluster.restart("nats")
    for job in (first, second):
        view = cluster.finish(job)
        assert (view.attempt, view.restarts) == (1, 0)
        assert [life.incarnation for life in cluster.lives(job)] == [1, 1, 1]
