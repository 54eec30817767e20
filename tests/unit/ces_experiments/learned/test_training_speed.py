"""``ces bench train-steps``: the rate of decisions, for every environment and number of threads."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from ces_client.cli.app import app
from ces_experiments.learned import training_speed as speed
from ces_rl.envs.placement.simulation import PlacementSimulation
from ces_rl.envs.simulation import SlotSize


def test_every_environment_is_measured_with_one_thread_and_with_all(tmp_path: Path) -> None:
    words = ["bench", "train-steps", "--slots", "16", "--rounds", "2", "--threads", "2", "--out", str(tmp_path)]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["steps"].keys() == speed.ENVIRONMENTS.keys()
    for found in results["steps"].values():
        assert list(found) == ["1", "2"]
        assert all(0 < rates["least"] <= rates["median"] <= rates["most"] for rates in found.values())
    tables = (tmp_path / "tables.md").read_text()
    assert all(name in tables for name in speed.ENVIRONMENTS)


def test_only_slots_that_run_count_as_decisions() -> None:
    simulation = PlacementSimulation(3, SlotSize.complete(8, 10))
    assert not simulation.running.any()
    assert speed.play(simulation, 1) == 0
    speed.begin(simulation, 1)
    playing = int(simulation.running.sum())
    assert playing
    decisions = speed.play(simulation, 1)
    assert not simulation.running.any()
    assert decisions == sum(int(simulation.slot(i)[2].level[0]) for i in range(3)), (
        "each placed a task, and those only count"
    )
    assert playing <= decisions <= speed.TASKS[1] * playing
