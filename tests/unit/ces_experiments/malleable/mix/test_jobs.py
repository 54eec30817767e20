"""The jobs of a mix: drawn by seed, the same for malleable and rigid ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from statistics import fmean

import pytest

from ces_experiments.malleable.mix.jobs import (
    CORES,
    HINTED,
    LOAD,
    MALLEABLE,
    SIZES,
    START_S,
    USUAL,
    MixJob,
    draw,
    file_of,
    topology,
)

JOB = MixJob("000", 3.0, 100, 0.02, 0.5, 0.004, 40)


def test_a_seed_draws_the_same_jobs_and_another_one_others() -> None:
    assert draw(1, 30, 4) == draw(1, 30, 4)
    assert draw(1, 30, 4) != draw(2, 30, 4)
    assert [job.name for job in draw(1, 3, 4)] == ["000", "001", "002"]


def test_jobs_arrive_one_after_the_other_at_the_load_that_is_meant() -> None:
    loads = []
    for seed in range(40):
        jobs = draw(seed, 100, 4)
        assert all(first.arrives_s < second.arrives_s for first, second in pairwise(jobs))
        loads.append(sum(job.seconds(1) for job in jobs) / (4 * CORES * jobs[-1].arrives_s))
    assert fmean(loads) == pytest.approx(LOAD, rel=0.1)


def test_more_nodes_get_jobs_faster() -> None:
    few, many = draw(1, 30, 4), draw(1, 30, 8)
    assert many[-1].arrives_s == pytest.approx(few[-1].arrives_s / 2)
    assert [job.steps for job in few] == [job.steps for job in many]


def test_every_job_can_be_in_time_alone() -> None:
    for job in (each for seed in range(20) for each in draw(seed, 30, 4)):
        assert job.asked(1) <= max(USUAL)
        assert job.seconds(max(SIZES)) < job.seconds(1)


def test_a_rigid_job_asks_for_the_smallest_size_that_would_be_in_time() -> None:
    assert JOB.asked(1) == 2
    assert JOB.seconds(2) + START_S <= JOB.within_s < JOB.seconds(1) + START_S
    assert JOB.asked(0.75) == 3
    assert JOB.asked(0.01) == 8, "the fastest, where none is fast enough"


def test_both_ways_are_the_same_job() -> None:
    one, other = file_of(JOB, MALLEABLE, "one"), file_of(JOB, "1", "other")
    assert one.tasks[0].command == other.tasks[0].command
    assert one.deadline == other.deadline
    assert one.elastic is not None
    assert (list(one.elastic.allowed), one.elastic.speed.total) == (list(SIZES), JOB.steps)
    assert set(one.elastic.speed.hint) == set(HINTED)
    assert one.elastic.speed.hint[2] == pytest.approx(JOB.steps / JOB.seconds(2), abs=1e-3)
    assert [task.name for task in other.expand_tasks()] == ["w-0", "w-1"]
    assert other.duration is not None
    assert 0 < other.duration - JOB.seconds(2) <= 2
    assert len(one.at_size(4).expand_flows()) == 6
    assert one.at_size(1).expand_flows() == file_of(replace(JOB, within_s=90), "1", "alone").expand_flows() == []


def test_hosts_stand_around_a_switch() -> None:
    found = topology(3)
    assert [node.name for node in found.workers] == ["n1", "n2", "n3"]
    assert sum(node.cpu for node in found.workers) == 3 * CORES * 1000
    assert len(found.links) == 3
