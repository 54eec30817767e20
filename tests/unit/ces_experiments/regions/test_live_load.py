"""The load on real regions, and what is read off the homes' logs."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from ces_experiments.regions.live_load import Load, jobs, ran, summary
from ces_experiments.regions.live_report import tables

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_a_quarter_of_the_homes_has_half_of_the_jobs_and_each_may_leave() -> None:
    made = jobs(Load(jobs=400))
    counts = Counter(home for home, _ in made)
    assert set(counts) == {0, 1, 2, 3}
    assert 150 < counts[0] < 250
    assert len({file.name for _, file in made}) == 400
    for _, file in made[:5]:
        file.check_may_leave()
        assert file.regions == ["any"]
        assert len(file.expand_flows()) == 3
    assert jobs(Load(jobs=40)) == jobs(Load(jobs=40)) != jobs(Load(jobs=40, seed=2))
    assert not jobs(Load(jobs=1, tasks=1))[0][1].expand_flows()


def job(name: str, started: float | None, region: str | None = None, state: str = "succeeded") -> dict[str, Any]:
    return {
        "id": name,
        "state": state,
        "region": region,
        "started_at": None if started is None else at(started).isoformat(),
    }


def test_steps_at_home_and_elsewhere() -> None:
    moments = {
        "a": {"queued": at(0), "running": at(1)},
        "b": {"queued": at(0), "elsewhere": at(2), "succeeded": at(9)},
        "c": {"queued": at(0)},
    }
    found = summary(
        [
            ran("r1", job("a", 1), moments),
            ran("r1", job("b", 2.5, "r2"), moments),
            ran("r2", job("c", None, state="queued"), moments),
        ]
    )
    assert found["states"] == {"succeeded": 2, "queued": 1}
    assert (found["started"], found["elsewhere"]) == (2, 1)
    assert found["matrix"] == {"r1": {"r1": 1, "r2": 1}, "r2": {"r2": 1}}
    assert [found[step]["p50"] for step in ("at_home_ms", "elsewhere_ms", "decided_ms", "begun_ms")] == [
        1000,
        2500,
        2000,
        500,
    ]
    traffic = {"messages": 1.0, "bytes": 2.0}
    told = found | {
        "load": {"regions": 2, "nodes": 6, "jobs": 3, "rate": 1.0, "tasks": 3, "run_s": 1.0, "seed": 1, "offered": 0.5},
        "hub": {"idle_per_s": traffic, "loaded_per_s": traffic, "per_job_elsewhere": traffic},
        "offers": {"placed": 1, "no-bid": 0},
        "cpu_ms_per_job": {"manager": 5.0},
        "seconds": 9.0,
    }
    grids = tables(told)
    assert "1 queued, 2 succeeded; 1 ran elsewhere" in grids[0].title
    assert grids[2].rows == [["r1", "1", "1"], ["r2", "0", "1"]]
    assert "placed 1." in grids[2].title
