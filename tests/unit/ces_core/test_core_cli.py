"""``ces solve`` and ``ces solvers`` as scripts meet them."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ces_core.checker import check
from ces_core.generate import random_instance
from ces_core.policy.onnx import SHIPPED, load_policy


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    for name in ("solve", "solvers"):
        (point,) = entry_points(group="ces.commands", name=name)
        app.command(name)(point.load())
    return app


def _write(folder: Path, name: str, content: object) -> str:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(file)


def test_one_json_line_per_file_in_order(app: typer.Typer, tmp_path: Path) -> None:
    placed = random_instance("thesis", 1)
    hopeless = random_instance("thesis", 2)
    hopeless["job"]["tasks"][0]["cpu"] = 1000
    files = [_write(tmp_path, "placed.json", placed), _write(tmp_path, "hopeless.json", hopeless)]
    run = CliRunner().invoke(app, ["solve", *files, "-o", "json", "--seed", "3", "--solver", "greedy"])
    assert run.exit_code == 0
    first, second = (json.loads(line) for line in run.stdout.splitlines())
    assert [first["instance"], second["instance"]] == files
    assert first["solver"] == "greedy"
    assert first["feasible"]
    assert set(first) == {
        "instance", "solver", "feasible", "assignments", "flows", "metrics", "bound", "paths", "solve_ms",
    }  # fmt: skip
    assert check(placed, first) == []
    assert not second["feasible"]
    assert "t0 needs 1000 cpu on one node" in second["reason"]


def test_bad_files_are_named_and_the_others_answered(app: typer.Typer, tmp_path: Path) -> None:
    broken = random_instance("thesis", 1)
    broken["links"][4]["dst"] = "nowhere"
    files = [
        _write(tmp_path, "broken.json", broken),
        _write(tmp_path, "text.json", "{nope"),
        str(tmp_path / "absent.json"),
        _write(tmp_path, "good.json", random_instance("thesis", 1)),
    ]
    run = CliRunner().invoke(app, ["solve", *files, "-o", "json"])
    assert run.exit_code == 2
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert [line["error"]["instance"] for line in lines[:3]] == files[:3]
    assert lines[0]["error"]["field"] == "links[4].dst"
    assert lines[3]["feasible"]
    for file, text in zip(files, ("links[4].dst", "not JSON", "No such file"), strict=False):
        assert any(file in line and text in line for line in run.stderr.splitlines())


def test_an_unknown_solver_is_bad_input(app: typer.Typer, tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["solve", _write(tmp_path, "i.json", random_instance()), "--solver", "magic"])
    assert run.exit_code == 2
    assert "greedy" in run.stderr


def test_tables_are_for_people(app: typer.Typer, tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["solve", _write(tmp_path, "i.json", random_instance("tight", 5)), "--basis", "job"])
    assert run.exit_code == 0
    assert "composite" in run.stdout
    listed = CliRunner().invoke(app, ["solvers"])
    assert "greedy" in listed.stdout
    as_json = json.loads(CliRunner().invoke(app, ["solvers", "-o", "json"]).stdout)
    assert {"default", "greedy"} <= {line["name"] for line in as_json}


def test_a_learned_solver_takes_a_policy_and_says_how_sure_it_was(app: typer.Typer, tmp_path: Path) -> None:
    instance = random_instance("thesis", 1)
    file = _write(tmp_path, "one.json", instance)
    learned = ["solve", file, "--solver", "ces-ppo", "--policy", str(SHIPPED)]
    run = CliRunner().invoke(app, [*learned, "-o", "json"])
    assert run.exit_code == 0
    answer = json.loads(run.stdout)
    assert answer["policy"]["version"] == load_policy(SHIPPED).version
    assert answer["policy"]["probabilities"].keys() == answer["assignments"].keys()
    assert check(instance, answer) == []
    table = CliRunner().invoke(app, learned)
    assert f"policy {load_policy(SHIPPED).version}" in table.stdout
    assert "probability" in table.stdout


@pytest.mark.parametrize(("solver", "reason"), [("ces-ppo", "No such file"), ("search", "asks no policy")])
def test_a_policy_that_cannot_be_used_is_bad_input(app: typer.Typer, tmp_path: Path, solver: str, reason: str) -> None:
    file = _write(tmp_path, "one.json", random_instance("thesis", 1))
    given = ["--solver", solver, "--policy", str(tmp_path / "missing.onnx"), "-o", "json"]
    run = CliRunner().invoke(app, ["solve", file, *given])
    assert run.exit_code == 2
    error = json.loads(run.stdout)["error"]
    assert error["field"] == "policy"
    assert reason in error["message"]


def test_k_paths_open_the_way_around(app: typer.Typer, tmp_path: Path) -> None:
    links = [("a", "b", 5), ("a", "c", 50), ("c", "b", 50)]
    instance = {
        "nodes": [{"name": "a", "cpu": 1}, {"name": "b", "cpu": 1}, {"name": "c"}],
        "links": [{"src": a, "dst": b, "bandwidth": bandwidth} for a, b, bandwidth in links],
        "job": {"tasks": [{"name": "t", "cpu": 1}], "flows": [{"src": "@a", "dst": "@b", "min": 10, "max": 20}]},
    }
    file = _write(tmp_path, "i.json", instance)
    run = CliRunner().invoke(app, ["solve", file, "-o", "json"])
    answer = json.loads(run.stdout)
    assert not answer["feasible"]
    assert answer["paths"] == "hop-shortest"
    run = CliRunner().invoke(app, ["solve", file, "-o", "json", "--paths", "2"])
    answer = json.loads(run.stdout)
    assert answer["paths"] == "2-shortest"
    assert answer["flows"][0]["path"] == ["a", "c", "b"]
    assert check(instance, answer, paths=2) == []


def test_no_path_at_all_is_bad_input(app: typer.Typer, tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["solve", _write(tmp_path, "i.json", random_instance()), "--paths", "0"])
    assert run.exit_code == 2
    assert "--paths" in run.stderr
