"""Jobs whose size changes on a cluster of eight places, two on each of four hosts, and jobs that make it change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fault_cluster import FaultCluster, recorded_job
from waiting import PATIENCE_S, wait_for

from ces_common.messages.api import JobView

PLACES = 8


def malleable(
    name: str,
    hold: Path,
    low: int,
    high: int,
    speed: dict[str, Any] | None = None,
    grace: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Its workers take a place each, and live for as long as the file is there. With a ``grace`` they use all of it:
    they do not end when they are told to."""
    hold.touch()
    elastic = {"group": "w", "workers": {"min": low, "max": high}, "speed": speed or {}}
    elastic |= {} if grace is None else {"grace": grace}
    job = recorded_job(name, 0, 0 if grace is None else "stubborn", hold, elastic=elastic, **more)
    del job["tasks"][0]["replicas"]
    job["tasks"][0]["resources"]["cpu"] = "1"
    return job


def rigid(name: str, hold: Path, replicas: int) -> dict[str, Any]:
    """Its workers take a place each, and live for as long as the file is there."""
    hold.touch()
    job = recorded_job(name, 0, 0, hold, replicas=replicas)
    job["tasks"][0]["resources"]["cpu"] = "1"
    return job


def resizes(cluster: FaultCluster, kind: str = "committed") -> int:
    """How many there were so far."""
    return sum(event["type"] == f"ces.v1.resize.{kind}" for event in cluster.events())


def runs_at(cluster: FaultCluster, job: str, size: int) -> bool:
    view = cluster.ask(lambda: cluster.client.jobs.get(job))
    return view.size == size and view.state == "running"


def await_size(cluster: FaultCluster, job: str, size: int, timeout_s: float = PATIENCE_S) -> JobView:
    """A job with a ring of flows, once it runs at that size. None of its workers was restarted."""
    try:
        wait_for(lambda: runs_at(cluster, job, size), f"the job runs with {size} workers", timeout_s)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{cluster.story(job)}") from None
    view = cluster.ask(lambda: cluster.client.jobs.get(job))
    assert len(view.placement) == size
    assert len(view.flows) == (size if size > 1 else 0)
    assert view.restarts == 0
    return view


def takes_room(
    cluster: FaultCluster, hold: Path, replicas: int, job: str, left: int, timeout_s: float = PATIENCE_S
) -> str:
    """A rigid job that runs for as long as its file is there, since the malleable one has shrunk for it."""
    other = cluster.submit(rigid("rigid", hold, replicas))
    cluster.await_state(other, "running", timeout_s=timeout_s)
    await_size(cluster, job, left, timeout_s)
    return other
