"""A small fleet on the real central services keeps its leases while jobs come, links flap and the manager stalls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ces_experiments.common.command import carry_out
from ces_experiments.control_plane.fleet.load import Fleet
from ces_experiments.control_plane.fleet.report import FLEET, tables
from ces_experiments.control_plane.fleet.run import Question


@pytest.mark.timeout(600)
def test_a_fleet_keeps_its_leases_while_its_manager_is_stopped(tmp_path: Path) -> None:
    fleet = Fleet(nodes=60, interval_s=1, lasts_s=18, jobs=6, run_s=1, flap_s=6, stalled_s=3)
    carry_out("fleet", FLEET, Question(fleet), tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())
    assert (results["lapses"], results["unreachable"]) == (0, 0)
    assert results["states"] == {"succeeded": 6}
    assert results["flaps"] >= 1
    assert results["links_changed"] >= 2
    assert results["recovered_s"] is not None
    assert results["heartbeats"] > 60
    assert len(tables(results)) == 3
    assert (tmp_path / "heartbeats.png").exists()
