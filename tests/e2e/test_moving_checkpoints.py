"""A malleable job whose first task loses its node goes on elsewhere from a checkpoint that was copied, or fetched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_cluster import FaultCluster, kill_worker, program, recorded_job, running, star, wait_for

from ces_client.audit import Event
from ces_testbed.services import agent_name
from ces_testbed.spec import Timing

TIMING = Timing(lease_s=7, lease_margin_s=3, unreachable_s=4)
SETTINGS = {"CES_CHECKPOINT_COPY_S": "1", "CES_RESIZE_S": "3600"}


@pytest.fixture(scope="module")
def _copying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    folder = tmp_path_factory.mktemp("ckp")
    with running("ckp", folder, star(4), timing=TIMING, settings=SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def copying(_copying: FaultCluster) -> Iterator[FaultCluster]:
    """A cluster that looks for new checkpoints each second, and resizes no job."""
    yield _copying
    for node in _copying.nodes:
        _copying.client.nodes.uncordon(node)
    _copying.check()


def counting(name: str, hold: Path, *flags: str) -> dict[str, Any]:
    """Three workers that count steps, each on a node of its own."""
    hold.touch()
    job = recorded_job(name, elastic={"group": "w", "sizes": [3]}, disconnect="stop")
    del job["tasks"][0]["replicas"]
    job["tasks"][0] |= program("counting", hold, *flags)
    job["tasks"][0]["resources"]["cpu"] = "1500m"
    return job


def told(cluster: FaultCluster, job: str, kind: str) -> list[Event]:
    return [
        event["data"]
        for event in cluster.events()
        if event["type"] == f"ces.v1.checkpoint.{kind}" and event["data"]["job"] == job
    ]


def step_of(cluster: FaultCluster, job: str) -> int:
    progress = cluster.client.jobs.get(job).placement[0].progress or {}
    return int(progress.get("progress", progress).get("round", 0))


def await_copy(cluster: FaultCluster, job: str, beyond: int) -> int:
    """Until a checkpoint of a later step than that is copied; returns a step that it has at least."""
    wait_for(lambda: step_of(cluster, job) > beyond, "it counts")
    step, copies = step_of(cluster, job), len(told(cluster, job, "copied"))
    # the second one from now on was surely packed later
    wait_for(lambda: len(told(cluster, job, "copied")) >= copies + 2, f"checkpoints are copied\n{cluster.story(job)}")
    return step - 10


def notes_of(cluster: FaultCluster, job: str) -> list[tuple[str, int]]:
    lines = [json.loads(line) for line in cluster.client.jobs.logs(job, "w-0") if '"notes"' in line]
    return [(what, step) for what, _, step in lines[-1]["notes"]]


def first_node(cluster: FaultCluster, job: str) -> str:
    node = cluster.client.jobs.get(job).placement[0].node
    assert node is not None
    return node


def has_copies(cluster: FaultCluster, node: str) -> bool:
    folder = cluster.cluster.files.agent(node)
    return any(any(folder.rglob(f"{name}/*")) for name in ("checkpoints", "checkpoint-copies"))


def end(cluster: FaultCluster, job: str, hold: Path) -> None:
    hold.unlink()
    cluster.finish(job)
    wait_for(lambda: not any(has_copies(cluster, node) for node in cluster.nodes), "nothing of it is left anywhere")


@pytest.mark.timeout(300)
def test_the_node_is_lost(copying: FaultCluster, open_folder: Path) -> None:
    hold = open_folder / "lost"
    job = copying.submit(counting("lost", hold, "--deaf"))
    copying.await_state(job, "running")
    copied = await_copy(copying, job, 20)
    before, pids = first_node(copying, job), copying.worker_pids(job)
    copying.cluster.kill(agent_name(before), stay_down=True)
    kill_worker(pids[0])
    wait_for(lambda: copying.client.jobs.get(job).attempt == 2, "it is placed again")
    copying.await_state(job, "running")
    assert first_node(copying, job) != before
    (restored,) = told(copying, job, "restored")
    assert (restored["node"], restored["name"]) == (first_node(copying, job), "books"), restored
    copying.cluster.restart(agent_name(before))
    await_copy(copying, job, copied)
    end(copying, job, hold)
    (first, *_, last), begins = (
        notes_of(copying, job),
        [step for what, step in notes_of(copying, job) if what == "begins"],
    )
    assert (first[0], last[0], begins[0], len(begins)) == ("begins", "ends", 0, 2)
    assert begins[1] >= copied > 0


@pytest.mark.timeout(300)
def test_the_node_is_drained(copying: FaultCluster, open_folder: Path) -> None:
    hold = open_folder / "drained"
    job = copying.submit(counting("drained", hold))
    copying.await_state(job, "running")
    await_copy(copying, job, 20)
    before = first_node(copying, job)
    copying.client.nodes.drain(before)
    wait_for(lambda: copying.client.jobs.get(job).attempt == 2, "it is placed again")
    copying.await_state(job, "running")
    assert first_node(copying, job) != before
    (restored,) = told(copying, job, "restored")
    assert (restored["source"], restored["name"], restored.get("reason")) == (before, "books", None)
    end(copying, job, hold)
    notes = notes_of(copying, job)
    assert [what for what, _ in notes] == ["begins", "told", "begins", "ends"]
    assert notes[1][1] == notes[2][1] > 20, "nothing is lost: what it wrote when it was told to end was fetched"
