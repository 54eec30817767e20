"""Two managers side by side: when one is killed or hangs the other goes on with what one does for both, and either
knows what nodes measured."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest
from fault_cluster import FaultCluster, recorded_job, running, star
from waiting import answers, wait_for

from ces_client import Client

MANAGERS = ["manager", "manager-2"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    with running("man", tmp_path_factory.mktemp("man"), star(2), managers=2) as made:
        yield made
        made.check()


def asked(cluster: FaultCluster, manager: str) -> Client:
    return Client(cluster.cluster.layout.url(manager), cluster.cluster.token)


def look(cluster: FaultCluster, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{cluster.cluster.files.database}?mode=ro", uri=True)) as file:
        return file.execute(query).fetchall()


def relaying(cluster: FaultCluster) -> str:
    """Which manager relays events."""
    ports = {cluster.cluster.layout.port(name): name for name in MANAGERS}
    [(holder,)] = look(cluster, "SELECT holder FROM duties WHERE name = 'relay'")
    return ports[int(str(holder).rpartition(":")[2] or 0)]


def all_published(cluster: FaultCluster) -> bool:
    return look(cluster, "SELECT count(*) FROM events WHERE NOT published") == [(0,)]


@pytest.mark.parametrize("how", ["killed", "hangs"])
def test_the_other_manager_goes_on_relaying(cluster: FaultCluster, how: str) -> None:
    first = relaying(cluster)
    [second] = [name for name in MANAGERS if name != first]
    process = psutil.Process(cluster.cluster.supervisor.pid(first))
    if how == "killed":
        cluster.cluster.kill(first, stay_down=True)
    else:
        process.suspend()
    try:
        with asked(cluster, second) as client:
            job = client.jobs.submit(recorded_job(f"relayed-{how}", 1, replicas=2)).id
            wait_for(lambda: all_published(cluster), "events flow again")
            assert relaying(cluster) == second
            wait_for(lambda: client.jobs.get(job).state == "succeeded", "the job is done")
    finally:
        if how == "killed":
            cluster.cluster.restart(first)
        else:
            process.resume()
    wait_for(lambda: answers(cluster.cluster.layout.ready_url(first)), f"{first} is ready")
    with asked(cluster, first) as client:
        again = client.jobs.submit(recorded_job(f"back-{how}", 1, replicas=2)).id
        wait_for(lambda: client.jobs.get(again).state == "succeeded", "the job is done")
    assert relaying(cluster) == second


@pytest.mark.needs("root")
def test_either_knows_all_that_was_measured_of_a_flow(cluster: FaultCluster) -> None:
    """Each report comes to one of them alone."""
    job = cluster.submit(recorded_job("measured", 600, "hang", replicas=2))
    with asked(cluster, "manager") as one, asked(cluster, "manager-2") as two:

        def samples(client: Client) -> set[tuple[str, str, int]]:
            """By their flow and link and the second in which they came."""
            return {
                (flow.src, f"{hop.src}-{hop.dst}", round(sample.at.timestamp()))
                for flow in client.jobs.flows(job).flows
                for hop in flow.hops
                for sample in hop.samples
            }

        def both_know() -> bool:
            """But for what a slow sender leaves out: it shares a node's newest alone."""
            counts = [len(samples(client)) for client in (one, two)]
            return min(counts) >= 30 and min(counts) > 0.8 * max(counts)

        try:
            wait_for(both_know, "much was reported, and either knows of nearly all")
        finally:
            one.jobs.cancel(job)
