"""``ces adjust --dry-run`` on files. Of jobs: test_adjust_job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ces_client.cli.adjust import adjust
from ces_core.exact.solver import EXACT
from ces_core.model.instance import read_instance

EXAMPLE = Path(__file__).parents[4] / "examples/instances/inspection-loop.json"


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(adjust)
    return app


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """An instance, and the best plan for it."""
    instance = json.loads(EXAMPLE.read_text())
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(EXACT.solve(read_instance(instance)).to_dict()))
    return EXAMPLE, answer


def _slower(folder: Path, **section: Any) -> str:
    """The example with 30 ms on the way to the gate."""
    instance = json.loads(EXAMPLE.read_text())
    for link in instance["links"]:
        if "gate1" in (link["src"], link["dst"]):
            link["delay_ms"] = 30
    file = folder / "slower.json"
    file.write_text(json.dumps(instance | {"adjust": section}))
    return str(file)


def test_what_is_best_already_stays(app: typer.Typer, files: tuple[Path, Path]) -> None:
    run = CliRunner().invoke(app, [*map(str, files), "--dry-run"])
    assert run.exit_code == 0, run.output
    assert "nothing would change" in run.output
    assert "No adjustment with at most 3 moves gains more than" in run.output


def test_a_move_is_shown_with_what_it_costs(app: typer.Typer, files: tuple[Path, Path], tmp_path: Path) -> None:
    instance = _slower(tmp_path, tasks={"detect": {"restart_s": 4.0}})
    run = CliRunner().invoke(app, [instance, str(files[1]), "--dry-run"])
    assert run.exit_code == 0, run.output
    assert "a limit is broken" in run.output
    assert "loop: 108.2 ms of 90 ms" in run.output
    assert "requests meanwhile" in run.output
    told = CliRunner().invoke(app, [instance, str(files[1]), "--dry-run", "-o", "json"])
    decision = json.loads(told.stdout)
    assert decision["broken"][0]["code"] == "deadline"
    moved = {move["task"]: move for move in decision["adjustment"]["moves"]}
    assert moved["detect"]["seconds"] == 4.0
    assert moved["detect"]["requests"] == 80.0
    assert decision["certificate"]["proven"]


def test_what_cannot_be_mended_is_an_error_for_scripts(
    app: typer.Typer, files: tuple[Path, Path], tmp_path: Path
) -> None:
    run = CliRunner().invoke(app, [_slower(tmp_path, budget=0.0), str(files[1]), "--dry-run"])
    assert run.exit_code == 1, run.output
    assert "No adjustment with at most 3 moves ends what is broken." in run.output


@pytest.mark.parametrize(
    ("section", "text"),
    [({"budget": -1.0}, "adjust.budget: must be"), ({"tasks": {"other": {}}}, "no task is called 'other'")],
)
def test_bad_input_is_named(
    app: typer.Typer, files: tuple[Path, Path], tmp_path: Path, section: dict[str, Any], text: str
) -> None:
    run = CliRunner().invoke(app, [_slower(tmp_path, **section), str(files[1]), "--dry-run"])
    assert run.exit_code == 2
    assert text in run.output


def test_a_refusal_is_no_plan(app: typer.Typer, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps({"feasible": False, "reason": "full"}))
    run = CliRunner().invoke(app, [str(EXAMPLE), str(answer), "--dry-run"])
    assert run.exit_code == 2
    assert "has no plan that could be adjusted" in run.output


@pytest.mark.parametrize("options", [[], ["--apply"], ["--apply", "--dry-run"]])
def test_of_files_without_dry_run_alone_nothing_is_done_and_said(
    app: typer.Typer, files: tuple[Path, Path], options: list[str]
) -> None:
    run = CliRunner().invoke(app, [*map(str, files), *options])
    assert run.exit_code == 2
    assert "add --dry-run" in run.output


def test_moves_of_files_are_said_in_the_instance(app: typer.Typer, files: tuple[Path, Path]) -> None:
    run = CliRunner().invoke(app, [*map(str, files), "--dry-run", "--moves", "1"])
    assert run.exit_code == 2
    assert "--moves: is for jobs of a cluster: of files, say `most_moves`" in run.output


def test_a_file_without_a_plan_is_no_job(app: typer.Typer, files: tuple[Path, Path]) -> None:
    run = CliRunner().invoke(app, [str(files[0]), "--dry-run"])
    assert run.exit_code == 2
    assert "is a file: give the plan that runs as well" in run.output
