"""A wire dies under a running job: its stream goes on over the other way, in the same connection between the same
processes; when the wire is back, so is the stream."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fault_cluster import FaultCluster, running, wait_for

from ces_experiments.network.reroute import DIRECT, arrived, home, outage, path, ring, stream

pytestmark = [pytest.mark.needs("root"), pytest.mark.alone]


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    with running("way", tmp_path_factory.mktemp("way"), ring()) as cluster:
        yield cluster
        cluster.check()


def test_a_stream_outlives_the_wire_it_runs_on(cluster: FaultCluster) -> None:
    client, hosts = cluster.client, cluster.cluster.hosts
    job = cluster.submit(stream(600, env={"CES_TEST_PROGRAM": "stream"}))
    cluster.await_state(job, "running")
    assert path(client, job) == DIRECT
    wait_for(lambda: len(arrived(client, job)) > 20, "the stream runs")
    workers = cluster.worker_pids(job)
    assert len(workers) == 2

    seen = outage(client, hosts, job)
    print(seen)
    assert seen.rate > 20_000_000, "as fast as its class, not as what reserved nothing"
    home(client, hosts, job)

    view = client.jobs.get(job)
    assert (view.state, view.attempt, view.restarts) == ("running", 1, 0)
    assert cluster.worker_pids(job) == workers
    revised = [event for event in cluster.events() if event["type"] == "ces.v1.plan.revised"]
    assert [event["data"]["cause"] for event in revised] == ["link", "room"]
    client.jobs.cancel(job)
