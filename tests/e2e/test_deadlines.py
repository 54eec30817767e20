"""Deadlines on emulated hosts: a job grows at the expense of one without, so that it ends in time, and one that cannot
is refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fault_cluster import FaultCluster
from resized_jobs import PLACES, await_size, malleable
from waiting import PATIENCE_S, wait_for

from ces_common.jobfile import JobFile
from ces_common.messages.events import DeadlineTold


def work(total: int) -> dict[str, Any]:
    """As many units a second as it has workers."""
    return {"total": total, "hint": {str(size): size for size in range(1, PLACES + 1)}}


def told(cluster: FaultCluster, job: str) -> list[DeadlineTold]:
    found = [event["data"] for event in cluster.events() if event["type"] == "ces.v1.job.deadline"]
    return [DeadlineTold.model_validate(data) for data in found if data["job"] == job]


@pytest.mark.timeout(300)
def test_a_job_grows_at_the_expense_of_one_without_a_deadline(cluster: FaultCluster, open_folder: Path) -> None:
    """Jobs are resized once a minute, but at once where a deadline is at stake."""
    other = cluster.submit(malleable("other", open_folder / "other", 1, PLACES))
    await_size(cluster, other, PLACES)
    job = cluster.submit(malleable("due", open_folder / "due", 1, PLACES, work(1200), deadline="300s"))

    def in_time() -> bool:
        view = cluster.ask(lambda: cluster.client.jobs.get(job))
        return view.state == "running" and (view.size or 0) >= 4

    wait_for(in_time, "it has the workers that it needs")
    view = cluster.client.jobs.get(job)
    assert view.deadline_at == view.submitted_at + timedelta(seconds=300)
    (open_folder / "due").unlink()
    ended = cluster.finish(job)
    assert ended.finished_at is not None
    assert ended.finished_at < view.deadline_at
    assert cluster.client.jobs.get(other).restarts == 0
    assert told(cluster, job)[0].kept
    (open_folder / "other").unlink()
    cluster.finish(other)
    assert cluster.books().deadlines.kept >= 1


@pytest.mark.timeout(120)
def test_an_impossible_one_is_refused_with_its_earliest_end(cluster: FaultCluster, open_folder: Path) -> None:
    asked = malleable("never", open_folder / "never", 1, PLACES, work(4000), deadline="60s")
    forecast = cluster.client.plan(JobFile.model_validate(asked))
    assert (forecast.feasible, forecast.reason is not None and forecast.reason.code) == (False, "deadline")
    assert forecast.end_at is not None
    job = cluster.submit(asked)
    view = cluster.await_state(job, "failed")
    assert view.deadline_at is not None
    assert view.expected_end_at is not None
    takes = timedelta(seconds=4000 / PLACES)
    assert takes <= view.expected_end_at - view.submitted_at <= takes + timedelta(seconds=PATIENCE_S)
    earliest = view.expected_end_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert view.reason == (
        f"deadline: it cannot end in time beside the jobs that are admitted: its earliest end is {earliest}"
    )
    assert (view.attempt, view.nodes) == (1, [])
    (refused,) = told(cluster, job)
    assert refused.refusal is not None
    assert refused.refusal.code == "deadline"
