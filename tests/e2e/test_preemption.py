"""A more urgent job takes the place of another, on emulated hosts: the other is frozen where it is and goes on, or is
stopped and begins anew. All the time the log adds up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_cluster import FaultCluster, recorded_job, wait_for
from waiting import answers

from ces_common.messages.api import JobView
from ces_testbed.services import MANAGER, SCHEDULER

MBIT = 10**6
CPU, MEMORY = 2000, 64 * 2**20  # of each host, and of each task


@pytest.fixture
def preempting(cluster: FaultCluster, tmp_path: Path) -> Iterator[FaultCluster]:
    """Jobs make room for those whose priority is higher by 30."""
    file = tmp_path / "queue.yaml"
    file.write_text("preemption: 30")
    for env in ({"CES_QUEUE": str(file)}, {}):
        for service in (MANAGER, SCHEDULER):
            cluster.cluster.restart(service, env)
            wait_for(lambda name=service: answers(cluster.cluster.layout.ready_url(name)), f"{service} is ready")
        if env:
            yield cluster


def filling(name: str, hold: Path, priority: int, **more: Any) -> dict[str, Any]:
    """It takes all CPU of all hosts and most of their links, and runs for as long as its file is there."""
    hold.touch()
    job = recorded_job(name, 0, 0, hold, replicas=4, priority=priority, duration="1h", **more)
    job["tasks"][0]["resources"]["cpu"] = f"{CPU}m"
    job["flows"]["bandwidth"] = {"min": "60Mbit", "max": "80Mbit"}
    return job


def frozen(cluster: FaultCluster, job: str) -> bool:
    """Whether none of its workers did anything for ten of their heartbeats."""

    def done() -> list[str]:
        status = [Path(f"/proc/{pid}/status").read_text() for pid in cluster.worker_pids(job)]
        return [line for each in status for line in each.splitlines() if "ctxt_switches" in line]

    before = done()
    time.sleep(0.5)  # that nothing happens can only be seen over time
    return len(before) > 0 and done() == before


def rates(view: JobView) -> set[bool]:
    """Whether flows are given their minimum, or nothing."""
    assert all(flow.rate == 0 or (flow.rate or 0) >= 60 * MBIT for flow in view.flows)
    return {bool(flow.rate) for flow in view.flows}


@pytest.mark.timeout(300)
def test_a_job_that_allows_it_is_frozen_for_a_more_urgent_one_and_goes_on(
    preempting: FaultCluster, open_folder: Path
) -> None:
    low = preempting.submit(filling("low", open_folder / "low", 10, preemption="suspend"))
    assert rates(preempting.await_state(low, "running")) == {True}
    workers = preempting.worker_pids(low)

    urgent = preempting.submit(filling("urgent", open_folder / "urgent", 90))
    assert rates(preempting.await_state(urgent, "running")) == {True}
    view = preempting.await_state(low, "suspended")
    assert rates(view) == {False}
    assert "urgent" in (view.reason or "")
    wait_for(lambda: frozen(preempting, low), "its workers are frozen")
    assert preempting.worker_pids(low) == workers
    for node in preempting.client.nodes.list():
        if node.cpu:
            assert (node.cpu_allocated, node.memory_allocated) == (CPU, 2 * MEMORY)
    wait_for(
        lambda: (
            [(each.name, each.queue_status and each.queue_status.held_by) for each in preempting.client.queue()]
            == [("low", [urgent])]
        ),
        "it is told what it waits for",
    )

    (open_folder / "urgent").unlink()
    preempting.finish(urgent)
    assert rates(preempting.await_state(low, "running")) == {True}
    wait_for(lambda: not frozen(preempting, low), "its workers go on")
    assert preempting.worker_pids(low) == workers
    (open_folder / "low").unlink()
    assert preempting.finish(low).attempt == 1
    preempting.check()


@pytest.mark.timeout(300)
def test_any_other_is_stopped_and_begins_anew_when_there_is_room(preempting: FaultCluster, open_folder: Path) -> None:
    low = preempting.submit(filling("low", open_folder / "low", 10))
    preempting.await_state(low, "running")
    equal = preempting.submit(filling("equal", open_folder / "equal", 39))
    preempting.await_state(equal, "queued")
    urgent = preempting.submit(filling("urgent", open_folder / "urgent", 40))
    preempting.await_state(urgent, "running")
    view = preempting.await_state(low, "queued")
    assert (view.attempt, "urgent" in (view.reason or "")) == (2, True)
    for name, job in (("urgent", urgent), ("equal", equal), ("low", low)):
        (open_folder / name).unlink()
        preempting.await_state(job, "succeeded")
    preempting.check()


@pytest.mark.timeout(300)
def test_a_suspended_job_can_be_cancelled(preempting: FaultCluster, open_folder: Path) -> None:
    low = preempting.submit(filling("low", open_folder / "low", 10, preemption="suspend"))
    preempting.await_state(low, "running")
    urgent = preempting.submit(filling("urgent", open_folder / "urgent", 90))
    preempting.await_state(urgent, "running")
    preempting.await_state(low, "suspended")
    preempting.client.jobs.cancel(low)
    wait_for(lambda: not preempting.worker_pids(low), "its workers have ended")
    (open_folder / "urgent").unlink()
    preempting.finish(urgent)
    preempting.check()
