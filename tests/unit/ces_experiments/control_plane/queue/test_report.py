"""What the benchmark of the queue submits, and what it reads off the log."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from audit_logs import START, done, job, numbered, started

from ces_common.messages.desired import DesiredWorker
from ces_experiments.control_plane.queue.history import Fate, fates, longest_queue, seconds, waits
from ces_experiments.control_plane.queue.load import LONGEST, TENANTS, QueueLoad, runs_s
from ces_experiments.control_plane.queue.load import job as drawn

LOAD = QueueLoad(jobs=300, run_s=10)
BEGIN = datetime.fromisoformat("2026-01-01T00:00:00+00:00")


def fate(queued: float, planned: float | None, over: float | None) -> Fate:
    def moment(seconds: float | None) -> datetime | None:
        return None if seconds is None else BEGIN + timedelta(seconds=seconds)

    return Fate("j", BEGIN + timedelta(seconds=queued), moment(planned), moment(over))


def test_the_same_seed_draws_the_same_jobs_and_jobs_are_of_all_kinds() -> None:
    jobs = [drawn(LOAD, index) for index in range(LOAD.jobs)]
    assert jobs == [drawn(LOAD, index) for index in range(LOAD.jobs)]
    assert jobs[0] != drawn(QueueLoad(jobs=300, run_s=10, seed=2), 0)
    tenants = Counter(each.tenant for each in jobs)
    assert tenants.most_common(1)[0][0] == TENANTS[0]
    assert set(tenants) == set(TENANTS)
    assert len({len(each.expand_tasks()) for each in jobs}) > 4
    assert len({each.priority for each in jobs}) == 3


def test_a_worker_runs_as_long_as_its_command_says_and_most_jobs_say_so() -> None:
    honest = silent = 0
    for index in range(LOAD.jobs):
        file = drawn(LOAD, index)
        task = file.expand_tasks()[0]
        worker = DesiredWorker(
            allocation="a",
            incarnation=1,
            job="j",
            job_name="j",
            task="t",
            rank=0,
            cpu=1,
            memory=1,
            command=task.command,
        )
        assert 0 < runs_s(worker) <= LONGEST * LOAD.run_s
        silent += file.duration is None
        honest += file.duration is not None and file.duration >= runs_s(worker)
    assert 0.7 < honest / LOAD.jobs < 0.95
    assert 0.03 < silent / LOAD.jobs < 0.2


def test_fates_are_read_off_a_log() -> None:
    """Events are a second apart; what j waits for its place is one of them."""
    events = numbered([*START, *started(), *done()])
    (found,) = fates(events)
    assert (found.name, found.state, found.plans, found.waited_s) == ("j", "succeeded", 1, 2.0)
    assert seconds([found]) == len(events) - len(START)
    again = [job("rescheduling", "running"), job("queued", "rescheduling", 2), *started(2)]
    (found,) = fates(numbered([*START, *started(), *again]))
    assert (found.plans, found.waited_s, found.over) == (2, 2.0, None)


def test_the_longest_queue_is_that_of_those_without_a_plan() -> None:
    assert longest_queue([]) == 0
    assert longest_queue([fate(0, 1, 5), fate(2, 3, 5)]) == 1
    assert longest_queue([fate(0, 10, 12), fate(1, 5, 12), fate(2, None, 3), fate(6, None, None)]) == 3


def test_waits_are_told_by_tenant_priority_and_size() -> None:
    jobs = {file.name: file for file in (drawn(LOAD, index) for index in range(20))}
    told = [Fate(name, BEGIN, BEGIN + timedelta(seconds=i)) for i, name in enumerate(jobs)]
    found = waits([*told, Fate(next(iter(jobs)), BEGIN)], jobs)
    assert (found["all"]["n"], found["all"]["max"]) == (20, 19.0)
    for kind in ("tenant", "priority", "tasks"):
        assert sum(each["n"] for who, each in found.items() if who.startswith(f"{kind} ")) == 20
