"""Workers that die or fail: the job's ``restart`` decides what becomes of its gang."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import psutil
import pytest
from fault_cluster import FaultCluster, kill_worker, recorded_job, wait_for


def running_job(cluster: FaultCluster, job: dict[str, object]) -> str:
    found = cluster.submit(job)
    cluster.await_state(found, "running")
    wait_for(lambda: len(cluster.lives(found)) == 3, "three workers have begun their records")
    return found


def starts(cluster: FaultCluster, job: str) -> Counter[str]:
    return Counter(life.task for life in cluster.lives(job))


@pytest.fixture
def hold(open_folder: Path) -> Path:
    """While this file is there, workers that are given it live on."""
    file = open_folder / "hold"
    file.touch()
    return file


@pytest.mark.parametrize("victim", ["worker", "shim"])
def test_the_whole_gang_starts_anew(cluster: FaultCluster, victim: str, hold: Path) -> None:
    job = running_job(cluster, recorded_job(f"gang-{victim}", 0.5, 0, hold))
    pid = cluster.worker_pids(job)[0]
    kill_worker(pid if victim == "worker" else psutil.Process(pid).ppid())
    wait_for(lambda: len(cluster.lives(job)) == 6, "all three live again")
    hold.unlink()
    view = cluster.finish(job)
    assert (view.attempt, view.restarts) == (1, 1)
    assert starts(cluster, job) == {"w-0": 2, "w-1": 2, "w-2": 2}


def test_one_task_alone_starts_anew(cluster: FaultCluster, hold: Path) -> None:
    job = running_job(cluster, recorded_job("task-scope", 0.5, 0, hold, restart={"scope": "task"}))
    kill_worker(cluster.worker_pids(job)[0])
    wait_for(lambda: len(cluster.lives(job)) == 4, "the killed worker lives again")
    hold.unlink()
    view = cluster.finish(job)
    assert (view.attempt, view.restarts) == (1, 1)
    assert sorted(starts(cluster, job).values()) == [1, 1, 2]


def test_never_means_never(cluster: FaultCluster) -> None:
    job = running_job(cluster, recorded_job("never", 0, "hang", restart={"policy": "never"}))
    kill_worker(cluster.worker_pids(job)[0])
    view = cluster.await_state(job, "failed")
    assert view.restarts == 0
    assert "exited with code 137" in (view.reason or "")
    wait_for(lambda: not cluster.worker_pids(job), "its peers are stopped")
    assert set(starts(cluster, job).values()) == {1}


def test_the_last_restart_is_the_last(cluster: FaultCluster) -> None:
    job = cluster.submit(recorded_job("failing", 0.3, 3, restart={"max": 2}))
    view = cluster.await_state(job, "failed")
    assert view.restarts == 2
    assert "exited with code 3" in (view.reason or "")
    assert "after 2 restarts" in (view.reason or "")
    assert max(life.incarnation for life in cluster.lives(job)) == 3
