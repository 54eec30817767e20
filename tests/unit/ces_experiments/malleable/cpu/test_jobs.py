"""The jobs of a run: drawn by seed, the same whoever chooses their CPU."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

import pytest

from ces_experiments.malleable.cpu.jobs import (
    GANGS,
    HOST,
    LEAST,
    LOAD,
    MOST,
    START,
    WORK_S,
    CpuJob,
    draw,
    topology,
    until_s,
)

JOB = CpuJob("000", 3.0, 2, 4.0)


def test_a_seed_draws_the_same_jobs_and_another_one_others() -> None:
    assert draw(1, 30, 4) == draw(1, 30, 4)
    assert draw(1, 30, 4) != draw(2, 30, 4)
    assert [job.name for job in draw(1, 3, 4)] == ["000", "001", "002"]


def test_jobs_arrive_one_after_the_other_at_the_load_that_is_meant() -> None:
    loads, gangs = [], []
    for seed in range(40):
        jobs = draw(seed, 100, 4)
        assert all(first.arrives_s < second.arrives_s for first, second in pairwise(jobs))
        assert all(WORK_S[0] <= job.work_s <= WORK_S[1] for job in jobs)
        loads.append(sum(job.workers * job.work_s for job in jobs) / (4 * HOST / 1000 * jobs[-1].arrives_s))
        gangs.append(fmean(job.workers == 2 for job in jobs))
    assert fmean(loads) == pytest.approx(LOAD, rel=0.1)
    assert fmean(gangs) == pytest.approx(GANGS, rel=0.1)


def test_all_ways_are_the_same_job() -> None:
    elastic, fixed = JOB.file("even", "one"), JOB.file("200m", "other")
    assert elastic.tasks[0].command == fixed.tasks[0].command
    assert elastic.elastic is not None
    assert elastic.elastic.cpu is not None
    assert (elastic.elastic.cpu.min, elastic.elastic.cpu.max) == (LEAST, MOST)
    assert list(elastic.elastic.allowed) == [2]
    assert [(task.name, task.cpu) for task in elastic.at_size(2).expand_tasks()] == [("w-0", START), ("w-1", START)]
    assert [(task.name, task.cpu) for task in fixed.expand_tasks()] == [("w-0", 200), ("w-1", 200)]
    assert JOB.tasks == ["w-0", "w-1"]


def test_all_say_how_long_they_take_with_what_they_ask_for() -> None:
    assert JOB.file("200m", "one").duration == 21
    assert JOB.file("50m", "two").duration == 81
    assert JOB.file("even", "three").duration == 41


def test_a_run_ends_even_if_nothing_runs_beside_another() -> None:
    jobs = [JOB, CpuJob("001", 10.0, 1, 2.0)]
    assert until_s(jobs, "even") - until_s(jobs, "100m") == pytest.approx(6.0 / 0.05 - 6.0 / 0.1)
    assert until_s(jobs, "100m") > 10 + 60


def test_hosts_offer_little() -> None:
    found = topology(3)
    assert [(node.name, node.cpu) for node in found.workers] == [("n1", HOST), ("n2", HOST), ("n3", HOST)]
    assert LEAST < START < MOST == HOST
