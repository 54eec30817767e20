"""What is offered to a simulation, and what it comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_core.model.errors import ProblemError
from ces_core.registry import get_solver
from ces_sim.arrivals import poisson, unread_columns
from ces_sim.cluster import simulate
from ces_sim.offered import drawn_cluster, paced
from ces_sim.outcome import OVER_TIME


def test_the_pace_offers_the_load() -> None:
    cluster, jobs = drawn_cluster("tight", 3, nodes=5), poisson(50, 1.0, 60.0, (1, 2), 3, regime="tight")
    for load in (0.5, 2.0):
        arriving = paced(jobs, cluster, load)
        span = arriving[-1].arrival_s
        work = [
            sum(job.duration_s * sum(getattr(task, what) for task in job.tasks) for job in arriving)
            for what in ("cpu", "memory")
        ]
        free = cluster.node_free[:2].sum(axis=1)
        assert max(work / free / span) == pytest.approx(load)
        gaps = {round(b.arrival_s / a.arrival_s, 6) for a, b in zip(jobs, arriving, strict=True)}
        assert len(gaps) == 1


def test_figures_are_of_the_cluster_when_it_has_filled() -> None:
    cluster, jobs = drawn_cluster("tight", 3, nodes=5), poisson(20, 1.0, 60.0, (1, 2), 3, regime="tight")
    outcome = simulate(cluster, paced(jobs, cluster, 0.8), get_solver("greedy"), patience_s=60.0)
    found = outcome.figures()
    assert found.keys() == {"accepted", "wait_s", *OVER_TIME}
    assert found["accepted"] == len(outcome.accepted) / 20
    start, end = outcome.fates[4].job.arrival_s, outcome.fates[-1].job.arrival_s
    assert found["cpu"] == outcome.average(lambda moment: moment.cpu, start, end)


def test_columns_of_a_trace_that_nobody_reads_are_known(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("user,submit_time,duration,num_gpu,cpu\nx,0,1,1,4\n")
    assert unread_columns(file) == ["user", "cpu"]
    file.write_text("user,duration\nx,1\n")
    with pytest.raises(ProblemError, match="arrival_s"):
        unread_columns(file)
