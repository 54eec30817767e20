"""Jobs that are submitted at their times to one cluster, run after run."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import pytest
from resize_log import event
from rich.progress import Progress
from submitted_jobs import SubmittedJobs

from ces_common.jobfile import JobFile
from ces_common.states import JobState
from ces_experiments.common import job_runs
from ces_experiments.common.job_runs import Arrival, JobRuns, after_each, each_run, found_by_audit

LOG = [event("job.queued", 0.0, "1"), event("job.succeeded", 5.0, "1"), event("job.queued", 6.0, "2")]


def file(name: str) -> JobFile:
    return JobFile.model_validate({"name": name, "tasks": [{"name": "w", "command": ["true"]}]})


def test_jobs_come_at_their_times_and_each_run_has_its_own_events(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = SubmittedJobs(lambda job: True, [])
    runs, log = JobRuns(cluster), LOG[:2]
    monkeypatch.setattr(job_runs, "events_until_now", lambda _: log)
    began = time.monotonic()
    ids, events = runs.submitted([Arrival(0.0, file("one")), Arrival(0.2, file("two"))], 60)
    assert time.monotonic() - began >= 0.2
    assert ids == ["1", "2"]
    assert [each["data"]["job"] for each in events] == ["1", "1"]
    log = LOG
    ids, events = runs.submitted([Arrival(0.0, file("three"))], 60)
    assert (ids, [each["data"]["job"] for each in events]) == (["3"], ["2"])
    assert [each.name for each in cluster.files] == ["one", "two", "three"]


def test_who_is_not_done_in_time_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = SubmittedJobs(lambda job: job == "1", [])
    monkeypatch.setattr(job_runs, "events_until_now", lambda _: [])
    JobRuns(cluster).submitted([Arrival(0.0, file("one")), Arrival(0.0, file("two"))], 0.0)
    assert cluster.states == {"1": JobState.SUCCEEDED, "2": JobState.CANCELLED}


def test_the_last_word_of_a_task_counts_if_its_job_succeeded() -> None:
    cluster: Any = SubmittedJobs(lambda job: True, ['{"key": 1}', "noise", '{"key": 2}', '{"other": 3}'])
    runs = JobRuns(cluster)
    cluster.submit(file("one"))
    assert runs.said("1", "w-0", "key") is None
    cluster.list()
    assert (runs.said("1", "w-0", "key"), runs.said("1", "w-0", "none")) == (2, None)


def test_each_seed_is_run_in_all_ways() -> None:
    found = list(each_run([1, 2], ["a", "b"], lambda seed, way: {"found": f"{way}{seed}"}))
    assert sorted((each["seed"], each["way"], each["found"]) for each in found) == [
        (1, "a", "a1"), (1, "b", "b1"), (2, "a", "a2"), (2, "b", "b2"),
    ]  # fmt: skip
    assert all({"load_average", "stolen", "took_s"} <= each.keys() for each in found)


def test_what_is_known_is_told_after_each_run() -> None:
    def runs() -> Generator[tuple[dict[str, Any], dict[str, Any]]]:
        for seed in (1, 2):
            yield {"seed": seed, "way": "a"}, {"findings": [], "events": seed}

    told = after_each(runs(), 2, {"known": 7}, lambda audit, done: f"{audit['events']} of {len(done)}", Progress())
    first, second = ((found.results["known"], found.results["audit"]["events"], found.failure) for found in told)
    assert (first, second) == ((7, 1, "1 of 1"), (7, 2, "2 of 2"))


def test_what_an_audit_found_is_said_with_its_first() -> None:
    assert found_by_audit([]) is None
    found = [{"event": 7, "text": "too much"}, {"event": 9, "text": "too late"}]
    assert found_by_audit(found) == "2 findings, first: event 7: too much"
