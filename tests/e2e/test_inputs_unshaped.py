"""Data of a node without a data plane (network ``none``): read at the host's address, at no promised rate, by all
workers of a host of which one may."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from fault_cluster import FaultCluster, running, wait_for
from reading_jobs import address_of, digest, hosts, offered, reader, reading, said

FILE = "mnist/images"
CONTENT = random.Random(7).randbytes(1_000_000)
HERE = "127.0.0.1"  # every host's address: without emulated hosts all agents are on this machine


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    root = tmp_path_factory.mktemp("datasets")
    for name in ("mnist", "words"):
        (root / name).mkdir()
    (root / FILE).write_bytes(CONTENT)
    (root / "words" / "list").write_text("one two")
    with running("inn", tmp_path_factory.mktemp("inn"), hosts(root), network="none") as cluster:
        wait_for(lambda: offered(cluster) == ["mnist", "words"], "n1 tells what it offers")
        yield cluster


@pytest.fixture
def cluster(started: FaultCluster) -> Iterator[FaultCluster]:
    yield started
    started.check()


def last(cluster: FaultCluster, job: str) -> int | None:
    """The status of the last answer that a job's reader got; None where it got none."""
    lines = said(cluster, job)
    return lines[-1].get("status") if lines else None


def test_the_right_bytes_come_and_no_rate_is_promised(cluster: FaultCluster) -> None:
    slowly = {"min": "1Mbit", "max": "1Mbit"}
    view = cluster.finish(cluster.submit(reading("far", "n2", FILE, "once", bandwidth=slowly)))
    (answer,) = said(cluster, view.id)
    assert (answer["status"], answer["sha256"]) == (200, digest(CONTENT))
    assert address_of(cluster, view.id).partition(":")[0] == HERE
    (flow,) = view.flows
    assert flow.rate is not None
    assert not flow.enforced
    sent_s = answer["samples"][-1][0] - answer["samples"][0][0]
    assert len(CONTENT) * 8 > 2 * flow.rate * sent_s, "nothing holds it back to what the plan gave"


def knock(cluster: FaultCluster, path: str, *addresses: str) -> list[dict[str, Any]]:
    """What a worker that asked for no data is answered at these addresses."""
    job = {"name": "stranger", "tasks": [reader("r", "n3", path, "once", *addresses)]}
    return said(cluster, cluster.finish(cluster.submit(job)).id)


def test_a_worker_reads_what_another_on_its_host_may(cluster: FaultCluster) -> None:
    words = cluster.submit(reading("words", "n2", FILE, "forever", datasets=["words"]))
    cluster.await_state(words, "running")
    wait_for(lambda: last(cluster, words) == 403, "it did not ask for mnist")
    images = cluster.submit(reading("images", "n3", FILE, "forever", datasets=["mnist"]))
    cluster.await_state(images, "running")
    wait_for(lambda: last(cluster, words) == 200, "another at its address did")
    address = address_of(cluster, words)
    assert [answer["status"] for answer in knock(cluster, FILE, address)] == [200], "whatever job it belongs to"
    assert knock(cluster, FILE) == [], "who asked for nothing is not told where anything is"
    cluster.client.jobs.cancel(images)
    wait_for(lambda: last(cluster, words) == 403, "nobody there may any more")
    cluster.client.jobs.cancel(words)
    cluster.await_state(words, "cancelled")
    wait_for(
        lambda: "error" in knock(cluster, "words/list", address)[0], "with the last reader gone, all are strangers"
    )


def test_readers_outlive_the_agent_that_serves_them(cluster: FaultCluster) -> None:
    job = cluster.submit(reading("patient", "n2", "words/list", "forever", datasets=["words"]))
    cluster.await_state(job, "running")
    wait_for(lambda: last(cluster, job) == 200, "it reads")
    service = "agent-n1"
    starts = cluster.cluster.supervisor.starts(service)
    cluster.cluster.kill(service, stay_down=True)
    wait_for(lambda: "error" in said(cluster, job)[-1], "nobody serves")
    cluster.cluster.restart(service)
    cluster.await_start_of(service, starts + 1)
    wait_for(lambda: last(cluster, job) == 200, "it reads again, at the same address")
    cluster.client.jobs.cancel(job)
