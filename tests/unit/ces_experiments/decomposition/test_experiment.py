"""``ces bench decomposition`` on a few small graphs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from gpu_tasks import bench

from ces_experiments.common.console import ContradictionError
from ces_experiments.decomposition import commands, experiment
from ces_experiments.decomposition.experiment import Cell, Question, divided

QUESTION = Question((10,), (3,), 2, 0, "tight", 6, 0.35, 2, "greedy", 1)


def test_every_way_is_measured_on_the_same_graphs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--vertices", "10", "--parts", "3", "--seeds", 2, "--nodes", 6, "--draws", 2, "--out", out)
    shown = bench(commands.decomposition, *words).stdout
    assert "10 vertices, 3 parts" in shown
    (found,) = json.loads((out / "results.json").read_text())["sizes"].values()
    assert found["to_random"]["n"] == 2
    assert found["to_random"]["mean"] < 1
    assert (out / "graphs.csv").read_text().startswith("vertices,parts,seed,cut,cut_metis,cut_random,placed,")


def test_the_same_seed_gives_the_same_figures() -> None:
    cell = Cell(QUESTION, 10, 3, 5)
    assert divided(cell) == divided(cell)


def test_a_part_above_its_capacity_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "clusters", lambda asked, parts, seed: np.zeros(asked.size, np.int64))
    with pytest.raises(ContradictionError, match="above its capacity"):
        divided(Cell(QUESTION, 10, 3, 0))
