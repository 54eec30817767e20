"""``ces bench longrun``: differences on the same jobs, in numbers, tables and a picture."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from bench_command import run_bench

from ces_experiments.queue.commands import longrun
from ces_experiments.queue.longrun import MEASURES, summarise

SMALL = ("--jobs", "10", "--nodes", "5", "--repeats", "2", "--loads", "0.5,1", "--regime", "tight", "--seed", "1")


bench = partial(run_bench, longrun)


def test_results_tables_and_picture(tmp_path: Path) -> None:
    shown = bench(*SMALL, "--solvers", "greedy,random", "--out", tmp_path).stdout
    found = json.loads((tmp_path / "results.json").read_text())["regimes"]["tight"]
    assert set(found) == {"0.5", "1"}
    for load in found.values():
        greedy, random = (load["solvers"][name]["served"]["mean"] for name in ("greedy", "random"))
        assert load["differences"]["random"]["served"]["mean"] == pytest.approx(random - greedy, abs=1e-5)
        assert set(load["differences"]) == {"random"}
    for text in (shown, (tmp_path / "tables.md").read_text()):
        assert text.count("Regime tight, offered load") == 2
        assert text.count("random - greedy") == 2
    assert (tmp_path / "gains.png").read_bytes().startswith(b"\x89PNG")


def test_differences_are_taken_repeat_by_repeat() -> None:
    runs = {
        "first": [dict.fromkeys(MEASURES, 1.0), dict.fromkeys(MEASURES, 5.0)],
        "other": [dict.fromkeys(MEASURES, 2.0), dict.fromkeys(MEASURES, 6.0)],
    }
    found = summarise(("first", "other"), runs)
    assert found["solvers"]["first"]["accepted"]["std"] > 2
    assert found["differences"]["other"]["accepted"]["mean"] == 1.0
    assert found["differences"]["other"]["accepted"]["std"] == 0.0


def test_one_solver_is_no_comparison(tmp_path: Path) -> None:
    assert "a comparison takes two" in bench(*SMALL, "--solvers", "greedy", "--out", tmp_path, code=2).output
