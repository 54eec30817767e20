"""The benchmark of the dashboard, small: what it finds that no busy machine changes, and that all of it is told."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from own_network import own_network

from ces_experiments.common.command import carry_out
from ces_experiments.dashboard.made_up import Asked
from ces_experiments.dashboard.report import DASHBOARD, goals, tables

pytestmark = pytest.mark.needs("browser")

FILES_KB, FILES = 90, 12


@pytest.mark.timeout(600)
def test_a_first_visit_is_small_and_every_goal_is_measured(tmp_path: Path) -> None:
    asked = Asked(nodes=30, wires=60, interval_s=2, visits=1, minutes=0.1, viewers=2, rounds=1, round_s=3)
    with own_network() as network, network.entered() if network else nullcontext():
        carry_out("dashboard", DASHBOARD, asked, tmp_path)  # fails where anything goes wrong in a page
    results = json.loads((tmp_path / "results.json").read_text())
    assert (results["links"], results["kept_places"]) == (120, 30)
    first = results["first_visit"]
    assert 0 < first["bytes"]["max"] <= FILES_KB * 1000
    assert 0 < first["requests"]["max"] <= FILES
    assert results["problems"] == []
    assert first["paint_s"]["p50"] <= first["usable_s"]["p50"]
    for each in results["map"].values():
        assert 0 < each["drawn_s"]["p50"] <= each["settled_s"]["p50"]
    assert all(each["n"] > 10 for each in results["frames_ms"].values())
    assert len(results["heap"]["samples"]) >= 3
    assert results["viewers"]["bytes_per_viewer_s"]["mean"] > 0
    assert all(each["count"] > 1 for each in results["viewers"]["commit_ms"].values())
    assert len(goals(results)) == 10
    assert len(tables(results)) == 3
    assert (tmp_path / "dashboard.png").exists()
