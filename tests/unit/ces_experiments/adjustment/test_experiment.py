"""``ces bench adjust`` on an hour of a day."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu_tasks import bench

from ces_experiments.adjustment import commands, experiment
from ces_experiments.adjustment.experiment import ANEW, LEAST, Cell, Question, lived
from ces_sim.adjustment.town import day

ONE_HOUR = 360


@pytest.fixture(autouse=True)
def _short_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "day", lambda seed, speed: day(seed, speed)[:ONE_HOUR])


def test_every_way_lives_the_same_days(tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = bench(commands.adjust, "--seeds", 1, "--out", out).stdout
    assert "solving anew" in shown
    found = json.loads((out / "results.json").read_text())
    assert found["ways"][LEAST]["moves"]["mean"] <= found["ways"][ANEW]["moves"]["mean"]
    assert found["ways"]["rates and paths only"]["moves"]["mean"] == 0
    assert (out / "moves.csv").read_text().startswith("way,seed,second,why,")
    assert (out / "adjust.png").exists()


def test_the_same_seed_gives_the_same_figures() -> None:
    cell = Cell(Question(1, 5, 10.0, 3.0, 1), LEAST, 5)
    assert lived(cell) == lived(cell)
