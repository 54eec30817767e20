"""Jobs that ask for GPUs on a running cluster: each gets a card of its own and sees no other. The cards are made up."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fault_cluster import FaultCluster, running, star, wait_for

from ces_testbed.topology import Topology

pytestmark = pytest.mark.needs("root")
IDS = ["GPU-first", "GPU-second"]
TELL = """
import glob, os, time
seen = sorted(path for path in glob.glob("/dev/nvidia*") if path[11:].isdigit())
print(seen, os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def files() -> Iterator[None]:
    """Device files of two cards, where the machine has none."""
    paths = [Path(f"/dev/nvidia{number}") for number in range(len(IDS))]
    if any(path.exists() for path in paths):
        pytest.skip("this machine has cards of its own, whose device files would be in the way")
    for path in paths:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    yield
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()


@pytest.fixture(scope="module")
def cluster(files: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    known = star(1).model_dump(mode="json", exclude_defaults=True)
    known["nodes"][0]["gpu"] = len(IDS)
    fakes = ",".join(f"{name}:T4:16Gi" for name in IDS)
    folder = tmp_path_factory.mktemp("gpus")
    with running("gpus", folder, Topology.model_validate(known), settings={"CES_GPU_FAKE": fakes}) as cluster:
        yield cluster
        cluster.check()


def asking(name: str, gpu: object = 1) -> dict[str, Any]:
    resources = {"cpu": "100m", "memory": "64Mi", "gpu": gpu}
    return {"name": name, "tasks": [{"name": "w", "command": ["python", "-c", TELL], "resources": resources}]}


def test_each_job_has_a_card_of_its_own(cluster: FaultCluster) -> None:
    (node,) = (each for each in cluster.client.nodes.list() if each.gpu)
    assert [(card.id, card.model, card.memory) for card in node.cards] == [(name, "T4", 2**34) for name in IDS]
    first, second, third = (cluster.submit(asking(f"j{i}")) for i in range(3))
    held = {}
    for job in (first, second):
        cluster.await_state(job, "running")
        wait_for(lambda job=job: list(cluster.client.jobs.logs(job)), "it tells what it sees")
        (task,) = cluster.client.jobs.get(job).placement
        (held[job],) = task.cards
        seen = f"['/dev/nvidia{IDS.index(held[job])}'] {held[job]}"
        assert next(iter(cluster.client.jobs.logs(job))).strip().endswith(seen)
    assert sorted(held.values()) == sorted(IDS)
    wait_for(lambda: cluster.client.jobs.get(third).waiting, "there is no third card")
    cluster.client.jobs.cancel(first)
    cluster.await_state(third, "running")
    assert cluster.client.jobs.get(third).placement[0].cards == [held[first]]
    for job in (second, third):
        cluster.client.jobs.cancel(job)


def test_jobs_share_a_card(cluster: FaultCluster) -> None:
    """Two with 500m are on one card, so that the other one is free for a job that wants it whole."""
    halves = [cluster.submit(asking(f"half{i}", "500m")) for i in range(2)]
    for job in halves:
        cluster.await_state(job, "running")
    (card,) = {cluster.client.jobs.get(job).placement[0].cards[0] for job in halves}
    whole = cluster.submit(asking("whole"))
    cluster.await_state(whole, "running")
    assert cluster.client.jobs.get(whole).placement[0].cards == [name for name in IDS if name != card]
    late = cluster.submit(asking("late", "10m"))
    wait_for(lambda: cluster.client.jobs.get(late).waiting, "both cards are full")
    reason = cluster.client.jobs.get(late).waiting
    assert reason is not None
    assert (reason.code, reason.text) == ("gpu-share", "a task needs 10m of one card; all 2 cards are full")
    cluster.client.jobs.cancel(halves[0])
    cluster.await_state(late, "running")
    assert cluster.client.jobs.get(late).placement[0].cards == [card]
    for job in (halves[1], whole, late):
        cluster.client.jobs.cancel(job)
