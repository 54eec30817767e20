"""``ces bench long-ppo``: ways on the same clusters, in numbers, tables and a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ces_experiments.learned import commands
from ces_experiments.learned.long_ppo import LESSONS, MEASURES, summarise

SMALL = ("--jobs", "10", "--repeats", "2", "--updates", "1", "--ahead", "1", "--futures", "1", "--seed", "5")


def bench(*arguments: object, code: int = 0) -> Any:
    app = typer.Typer()
    app.command()(commands.long_ppo)
    run = CliRunner().invoke(app, [str(word) for word in arguments])
    assert run.exit_code == code, run.output + repr(run.exception)
    return run


def test_the_lessons_of_the_command_are_those_of_the_experiment() -> None:
    assert tuple(LESSONS) == commands.LESSONS


def test_differences_are_taken_cluster_by_cluster() -> None:
    runs = {
        "search": [dict.fromkeys(MEASURES, 1.0), dict.fromkeys(MEASURES, 5.0)],
        "ppo": [dict.fromkeys(MEASURES, 1.5), dict.fromkeys(MEASURES, 5.5)],
    }
    found = summarise(runs)
    assert found["ways"]["ppo"]["served"]["std"] > 2
    assert found["differences"] == {"search": {"ppo": found["differences"]["search"]["ppo"]}}
    assert found["differences"]["search"]["ppo"]["served"]["mean"] == pytest.approx(0.5)
    assert found["differences"]["search"]["ppo"]["served"]["std"] == 0.0


def test_a_lesson_needs_the_one_it_begins_with(tmp_path: Path) -> None:
    said = bench(*SMALL, "--lessons", "imitation, then ppo", "--out", tmp_path, code=2).output
    assert "begins with" in said
    assert "is none of" in bench(*SMALL, "--lessons", "rote", "--out", tmp_path, code=2).output


def test_results_tables_and_picture(tmp_path: Path) -> None:
    bench(*SMALL, "--lessons", "", "--out", tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())
    assert set(found["differences"]) == {"search", "search-longrun", "ces-multi", "rule"}
    assert found["ways"]["true future"]["served"]["n"] == 2
    assert 0 < found["ways"]["search"]["accepted"]["mean"] <= 1
    assert "above search-longrun" in (tmp_path / "tables.md").read_text()
    assert (tmp_path / "gains.png").read_bytes().startswith(b"\x89PNG")
