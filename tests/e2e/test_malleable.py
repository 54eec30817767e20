"""Malleable jobs on emulated hosts: they start as large as there is room, shrink for jobs that wait, and grow again."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from fault_cluster import FaultCluster, program, wait_for
from resized_jobs import await_size, malleable, resizes, rigid, takes_room
from rich.console import Console, RenderableType

from ces_client.view.job import job_facts
from ces_common.messages.api import JobView

CALM_S = float(os.environ.get("CES_CALM_S", "10"))  # for so long nothing is to happen


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


def counting(name: str, hold: Path, *flags: str, high: int = 8, speed: dict[str, Any] | None = None) -> dict[str, Any]:
    """A malleable job of one to so many workers that counts steps."""
    job = malleable(name, hold, 1, high, speed)
    job["tasks"][0] |= program("counting", hold, *flags)
    return job


def notes_of(cluster: FaultCluster, job: str) -> list[tuple[str, int, int]]:
    """What all starts of an ended job wrote down: what, at which size, at which step."""
    lines = [json.loads(line) for line in cluster.client.jobs.logs(job, "w-0") if '"notes"' in line]
    return [(what, size, step) for what, size, step in lines[-1]["notes"]]


@pytest.mark.timeout(300 + CALM_S)
def test_two_jobs_that_share_leave_each_other_alone(resizing: FaultCluster, open_folder: Path) -> None:
    """Both are faster the larger they are, and tell how fast they are at each size."""
    first = resizing.submit(counting("first", open_folder / "first"))
    await_size(resizing, first, 8)
    second = resizing.submit(counting("second", open_folder / "second"))
    await_size(resizing, second, 4)
    await_size(resizing, first, 4)
    before = resizes(resizing)
    time.sleep(CALM_S)  # that nothing happens has no condition to wait for
    assert resizes(resizing) == before
    for name, job in (("first", first), ("second", second)):
        (open_folder / name).unlink()
        resizing.finish(job)


@pytest.mark.timeout(300)
def test_no_step_is_lost_or_repeated_by_a_program_that_writes_when_it_is_told(
    resizing: FaultCluster, open_folder: Path
) -> None:
    job = resizing.submit(counting("counting", open_folder / "counting"))
    await_size(resizing, job, 8)
    counts_on(resizing, job)
    other = takes_room(resizing, open_folder / "rigid", 4, job, 4)
    counts_on(resizing, job)
    (open_folder / "rigid").unlink()
    resizing.finish(other)
    await_size(resizing, job, 8)
    counts_on(resizing, job)
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


def counts_on(cluster: FaultCluster, job: str) -> None:
    """Until it has counted further than what may still be told of its start before this one."""
    before = last_step(cluster, job)
    wait_for(lambda: last_step(cluster, job) > before + 100, "the program of this size counts")


def measured(cluster: FaultCluster, job: str, *sizes: int) -> JobView:
    """The job once its speed at these sizes is known, and the scheduler goes by it."""

    def known() -> bool:
        view = cluster.client.jobs.get(job)
        return view.speeds is not None and set(sizes) <= view.speeds.sizes.keys() and view.size in view.predicted

    try:
        wait_for(known, f"the speed at {sizes} was measured")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{cluster.story(job)}\n{cluster.client.jobs.get(job).speeds}") from None
    return cluster.client.jobs.get(job)


@pytest.mark.timeout(300)
def test_a_job_that_gets_faster_grows_and_one_that_does_not_stays_small(
    resizing: FaultCluster, open_folder: Path
) -> None:
    """There is room for both, before and after. Both have much to do, so that a larger size pays at once."""
    much = {"total": 1_000_000}
    same = much | {"hint": {1: 10, 8: 10}, "unit": "images"}
    flat = resizing.submit(counting("flat", open_folder / "flat", "--steps", speed=same))
    await_size(resizing, flat, 1)
    other = resizing.submit(rigid("rigid", open_folder / "rigid", 4))
    resizing.await_state(other, "running")
    told = ("--steps", "--scales")
    scaling = resizing.submit(counting("scaling", open_folder / "scaling", *told, high=6, speed=much))
    await_size(resizing, scaling, 3)
    assert measured(resizing, scaling, 3).predicted[3] == pytest.approx(3 / 0.4, rel=0.4)
    (open_folder / "rigid").unlink()
    resizing.finish(other)
    await_size(resizing, scaling, 6)
    view = measured(resizing, scaling, 3, 6)
    assert view.speeds is not None
    assert view.speeds.sizes[6].rate > 1.3 * view.speeds.sizes[3].rate
    stays = measured(resizing, flat, 1)
    assert stays.size == 1
    facts = plain(job_facts(stays, datetime.now(UTC)))
    assert "of 1,000,000 images" in facts
    assert "images/s with 1" in facts
    for name, job in (("flat", flat), ("scaling", scaling)):
        (open_folder / name).unlink()
        resizing.finish(job)


@pytest.mark.timeout(300)
def test_a_job_that_was_measured_to_get_no_faster_does_not_grow_again(
    resizing: FaultCluster, open_folder: Path
) -> None:
    job = resizing.submit(counting("flat", open_folder / "flat", "--steps"))
    await_size(resizing, job, 8)
    measured(resizing, job, 8)
    other = takes_room(resizing, open_folder / "rigid", 4, job, 4)
    measured(resizing, job, 4, 8)
    (open_folder / "rigid").unlink()
    resizing.finish(other)
    ended = datetime.now(UTC)

    def noted_since() -> bool:
        speeds = resizing.client.jobs.get(job).speeds
        return speeds is not None and speeds.at > ended

    wait_for(noted_since, "its speed is noted again, half a minute later")
    assert resizing.client.jobs.get(job).size == 4
    (open_folder / "flat").unlink()
    resizing.finish(job)


def plain(what: RenderableType) -> str:
    """As a wide terminal shows it."""
    text = StringIO()
    Console(width=200, file=text).print(what)
    return " ".join(text.getvalue().split())
