"""Three real regions under a small load: all jobs succeed, some of them elsewhere, and what crosses the hub is counted.
How long it takes is not for tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ces_experiments.common.command import carry_out
from ces_experiments.regions.live import Question
from ces_experiments.regions.live_load import Load
from ces_experiments.regions.live_report import LIVE, tables


@pytest.mark.timeout(600)
def test_jobs_without_room_at_home_run_in_another_region(tmp_path: Path) -> None:
    load = Load(regions=3, nodes=3, jobs=18, rate=4.0, tasks=3, run_s=12.0)  # four fit in each region at a time
    carry_out("regions-live", LIVE, Question(load), tmp_path, plots=False)
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["states"] == {"succeeded": 18}
    assert results["elsewhere"] == results["begun_ms"]["count"] > 0
    assert results["offers"]["placed"] >= results["elsewhere"]
    assert sum(sum(where.values()) for where in results["matrix"].values()) == 18
    idle, loaded = (results["hub"][when]["messages"] for when in ("idle_per_s", "loaded_per_s"))
    assert loaded > idle > 2  # each tells each other one every two seconds
    assert results["hub"]["per_job_elsewhere"]["bytes"] > 0
    assert results["cpu_ms_per_job"]["federation"] > 0
    assert len(tables(results)) == 4
