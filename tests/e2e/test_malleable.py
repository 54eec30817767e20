"""Malleable jobs on emulated hosts: they start as large as there is room, shrink for jobs that wait, and grow again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fault_cluster import FaultCluster, program, recorded_job, wait_for
from resized_jobs import await_size, takes_room


def malleable(name: str, hold: Path, low: int, high: int, **more: Any) -> dict[str, Any]:
    """Its workers take half a host each, and live for as long as the file is there."""
    hold.touch()
    job = recorded_job(name, 0, 0, hold, elastic={"group": "w", "workers": {"min": low, "max": high}}, **more)
    del job["tasks"][0]["replicas"]
    job["tasks"][0]["resources"]["cpu"] = "1"
    return job


@pytest.mark.timeout(300)
def test_a_job_shrinks_for_one_that_waits_and_grows_again(resizing: FaultCluster, open_folder: Path) -> None:
    job = resizing.submit(malleable("malleable", open_folder / "malleable", 2, 8))
    await_size(resizing, job, 8)
    other = takes_room(resizing, open_folder / "rigid", 5, job, 3)
    (open_folder / "rigid").unlink()
    resizing.finish(other)
    await_size(resizing, job, 8)
    (open_folder / "malleable").unlink()
    resizing.finish(job)


@pytest.mark.timeout(300)
def test_two_malleable_jobs_share_what_is_there(resizing: FaultCluster, open_folder: Path) -> None:
    first = resizing.submit(malleable("first", open_folder / "first", 1, 8))
    await_size(resizing, first, 8)
    second = resizing.submit(malleable("second", open_folder / "second", 1, 8))
    await_size(resizing, second, 4)
    await_size(resizing, first, 4)
    for name, job in (("first", first), ("second", second)):
        (open_folder / name).unlink()
        resizing.finish(job)


def counting(name: str, hold: Path, *flags: str) -> dict[str, Any]:
    """A malleable job of one to eight workers that counts steps."""
    job = malleable(name, hold, 1, 8)
    job["tasks"][0] |= program("counting", hold, *flags)
    return job


def notes_of(cluster: FaultCluster, job: str) -> list[tuple[str, int, int]]:
    """What all starts of an ended job wrote down: what, at which size, at which step."""
    lines = [json.loads(line) for line in cluster.client.jobs.logs(job, "w-0") if '"notes"' in line]
    return [(what, size, step) for what, size, step in lines[-1]["notes"]]


@pytest.mark.timeout(300)
def test_no_step_is_lost_or_repeated_by_a_program_that_writes_when_it_is_told(
    resizing: FaultCluster, open_folder: Path
) -> None:
    job = resizing.submit(counting("counting", open_folder / "counting"))
    await_size(resizing, job, 8)
    other = takes_room(resizing, open_folder / "rigid", 4, job, 4)
    (open_folder / "rigid").unlink()
    resizing.finish(other)
    await_size(resizing, job, 8)
    (open_folder / "counting").unlink()
    resizing.finish(job)
    notes = notes_of(resizing, job)
    sizes = [("begins", 8), ("told", 8), ("begins", 4), ("told", 4), ("begins", 8), ("ends", 8)]
    assert [(what, size) for what, size, _ in notes] == sizes
    told = [step for what, _, step in notes if what == "told"]
    begins = [step for what, _, step in notes if what == "begins"]
    assert begins == [0, *told]


@pytest.mark.timeout(300)
def test_one_that_does_not_loses_what_is_since_its_last_checkpoint(resizing: FaultCluster, open_folder: Path) -> None:
    job = resizing.submit(counting("deaf", open_folder / "deaf", "--deaf"))
    await_size(resizing, job, 8)
    wait_for(lambda: last_step(resizing, job) > 25, "it has written checkpoints")
    other = takes_room(resizing, open_folder / "rigid", 4, job, 4)
    for name in ("rigid", "deaf"):
        (open_folder / name).unlink()
    resizing.finish(other)
    resizing.finish(job)
    begins = [step for what, _, step in notes_of(resizing, job) if what == "begins"]
    assert begins[0] == 0
    assert all(step >= 20 and step % 10 == 0 for step in begins[1:])


def last_step(cluster: FaultCluster, job: str) -> int:
    progress = cluster.client.jobs.get(job).placement[0].progress or {}
    return int(progress.get("progress", progress).get("round", 0))
