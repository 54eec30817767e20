"""``ces solve`` and ``ces check`` on jobs with deadlines, energy and reliability."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

EXAMPLE = Path(__file__).parents[4] / "examples/instances/inspection-loop.json"


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    for name in ("solve", "check"):
        (point,) = entry_points(group="ces.commands", name=name)
        app.command(name)(point.load())
    return app


def test_an_answer_says_where_the_time_goes_and_stands_the_check(app: typer.Typer, tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["solve", str(EXAMPLE), "--solver", "exact", "-o", "json"])
    assert run.exit_code == 0
    answer = json.loads(run.stdout)
    assert {"time_score", "power_change_w", "energy_score", "reliability", "objective"} <= answer["metrics"].keys()
    loop = next(request for request in answer["requests"] if request["name"] == "loop")
    assert loop["time_ms"] == pytest.approx(sum(step["ms"] for step in loop["steps"]))
    assert loop["time_ms"] <= loop["deadline_ms"]
    assert answer["bound"] == pytest.approx(answer["metrics"]["objective"], abs=1e-9)
    file = tmp_path / "answer.json"
    file.write_text(run.stdout)
    assert CliRunner().invoke(app, ["check", str(EXAMPLE), str(file)]).exit_code == 0
    loop["time_ms"] = 1.0
    file.write_text(json.dumps(answer))
    checked = CliRunner().invoke(app, ["check", str(EXAMPLE), str(file)])
    assert checked.exit_code == 1
    assert "request-time: request loop takes" in checked.stderr


def test_the_table_shows_requests_and_calls_power_modelled(app: typer.Typer) -> None:
    run = CliRunner().invoke(app, ["solve", str(EXAMPLE), "--solver", "exact"], env={"COLUMNS": "200"})
    assert run.exit_code == 0
    assert "decode on" in run.stdout
    assert "90 hard" in run.stdout
    assert "W by the model" in run.stdout
    assert run.stdout.count("(bound") == 1


def test_a_solver_that_does_not_know_goals_is_bad_input(app: typer.Typer) -> None:
    run = CliRunner().invoke(app, ["solve", str(EXAMPLE), "--solver", "best-fit", "-o", "json"])
    assert run.exit_code == 2
    assert json.loads(run.stdout)["error"]["field"] == "job"
    assert "best-fit does not know deadlines" in run.stderr
    assert "ask search, or exact" in run.stderr


def test_paths_by_delay_are_taken_and_checked(app: typer.Typer, tmp_path: Path) -> None:
    how = ["--paths", "2", "--path-metric", "delay"]
    run = CliRunner().invoke(app, ["solve", str(EXAMPLE), "--solver", "exact", *how, "-o", "json"])
    assert run.exit_code == 0
    assert json.loads(run.stdout)["paths"] == "2-least-delay"
    file = tmp_path / "answer.json"
    file.write_text(run.stdout)
    assert CliRunner().invoke(app, ["check", str(EXAMPLE), str(file), *how]).exit_code == 0
    other = CliRunner().invoke(app, ["check", str(EXAMPLE), str(file)])
    assert "path-set: paths are 2-least-delay, not hop-shortest" in other.stderr
    unsaid = CliRunner().invoke(app, ["solve", str(EXAMPLE), "--solver", "exact", "--path-metric", "delay"])
    assert unsaid.exit_code == 2
    assert "paths: say how many" in unsaid.stderr
