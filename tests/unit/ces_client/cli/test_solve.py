"""``ces solve``, ``ces check`` and ``ces solvers`` as scripts meet them."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ces_client.cli import solve as commands
from ces_core.checker import check
from ces_core.learned.policy import SHIPPED, load_policy
from ces_core.model.generate import random_instance
from ces_core.model.plan import Result
from ces_core.model.problem import Problem
from ces_core.search.greedy import GREEDY


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    for name in ("solve", "check", "solvers"):
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


@pytest.mark.parametrize("text", ["[" * 200_000, '{"nodes": ' + "[" * 200_000 + "]" * 200_000 + "}"])
def test_an_instance_that_lies_too_deep_is_bad_input(app: typer.Typer, tmp_path: Path, text: str) -> None:
    path = tmp_path / "deep.json"
    path.write_text(text)
    for command in (["solve", str(path)], ["check", str(path), str(path)]):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 2
        assert "deep.json: file: its lists and objects lie too deep within each other" in result.stderr


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
    assert {"name": "default", "summary": "alias of search-learned, which the service uses"} in as_json
    assert {"default", "greedy"} <= {line["name"] for line in as_json}


def test_a_learned_solver_takes_a_policy_and_says_how_sure_it_was(app: typer.Typer, tmp_path: Path) -> None:
    instance = random_instance("thesis", 1)
    file = _write(tmp_path, "one.json", instance)
    learned = ["solve", file, "--solver", "imitation", "--policy", str(SHIPPED)]
    run = CliRunner().invoke(app, [*learned, "-o", "json"])
    assert run.exit_code == 0
    answer = json.loads(run.stdout)
    assert answer["policy"]["version"] == load_policy(SHIPPED).version
    assert answer["policy"]["probabilities"].keys() == answer["assignments"].keys()
    assert check(instance, answer) == []
    table = CliRunner().invoke(app, learned)
    assert f"policy {load_policy(SHIPPED).version}" in table.stdout
    assert "probability" in table.stdout


@pytest.mark.parametrize(("solver", "reason"), [("imitation", "No such file"), ("search", "asks no policy")])
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


class Boastful:
    """Places as ``greedy`` does, and says that it gave the first flow more than it asked for."""

    name, summary = "boastful", "breaks a rule"

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        result = GREEDY.solve(problem, seed=seed, time_limit_s=time_limit_s)
        if result.plan is None:
            return result
        first, *others = result.plan.flows
        return replace(result, plan=replace(result.plan, flows=(replace(first, bandwidth=1e9), *others)))


def test_a_plan_that_breaks_a_rule_is_reported_as_broken(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "get_solver", lambda name: Boastful())
    hopeless = random_instance("thesis", 2)
    hopeless["job"]["tasks"][0]["cpu"] = 1000
    file, other = (
        _write(tmp_path, "i.json", random_instance("thesis", 1)),
        _write(tmp_path, "hopeless.json", hopeless),
    )
    run = CliRunner().invoke(app, ["solve", file, other, "--solver", "boastful", "-o", "json"])
    assert run.exit_code == 1
    broken, refused = (json.loads(line) for line in run.stdout.splitlines())
    assert "rate" in [each["code"] for each in broken["violations"]]
    assert "violations" not in refused
    assert f"{file}: the answer of solver boastful is broken:" in run.stderr
    assert "1000000000.0, outside" in run.stderr
    assert other not in run.stderr
    assert CliRunner().invoke(app, ["solve", file, "--solver", "boastful"]).exit_code == 1
    with_bad_input = CliRunner().invoke(app, ["solve", file, str(tmp_path / "absent.json"), "--solver", "boastful"])
    assert with_bad_input.exit_code == 2


class Failing:
    name, summary = "failing", "of another package"

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        raise KeyError(problem.name)


def test_a_solver_of_another_package_that_fails_is_told_of_by_its_line(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "get_solver", lambda name: Failing())
    file = _write(tmp_path, "i.json", random_instance())
    run = CliRunner().invoke(app, ["solve", file, file, "--solver", "failing"])
    assert run.exit_code == 2
    lines = run.stderr.splitlines()
    assert [line.startswith(f"error: {file}: solver failing: KeyError: ") for line in lines] == [True, True]
    assert f"({__file__}, line " in lines[0]


class FailingInside(Failing):
    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        read: Result = json.loads("nope")
        return read


def test_a_library_that_fails_is_told_of_by_the_solvers_own_line(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "get_solver", lambda name: FailingInside())
    file = _write(tmp_path, "i.json", random_instance())
    line = CliRunner().invoke(app, ["solve", file, "--solver", "failing"]).stderr
    assert "JSONDecodeError" in line
    assert f"({__file__}, line " in line


def test_an_answer_is_checked_against_its_instance(app: typer.Typer, tmp_path: Path) -> None:
    instance = _write(tmp_path, "i.json", random_instance("thesis", 1))
    line = CliRunner().invoke(app, ["solve", instance, "--solver", "greedy", "-o", "json"]).stdout
    right = _write(tmp_path, "right.json", line)
    run = CliRunner().invoke(app, ["check", instance, right])
    assert run.exit_code == 0
    assert run.stdout == f"{right}: breaks no rule\n"
    assert CliRunner().invoke(app, ["check", instance, "-"], input=line).exit_code == 0
    answer = json.loads(line)
    answer["metrics"]["composite"] += 0.25
    wrong = _write(tmp_path, "wrong.json", answer)
    run = CliRunner().invoke(app, ["check", instance, wrong])
    assert run.exit_code == 1
    assert run.stdout == ""
    assert f"error: {wrong}: the answer is broken:\n  metric: composite is" in run.stderr
    run = CliRunner().invoke(app, ["check", instance, wrong, "-o", "json"])
    assert [each["code"] for each in json.loads(run.stdout)["violations"]] == ["metric"]
    right_as_json = CliRunner().invoke(app, ["check", instance, right, "-o", "json"])
    assert json.loads(right_as_json.stdout) == {"instance": instance, "answer": right, "violations": []}


def test_paths_and_basis_of_an_answer_are_those_that_it_was_made_with(app: typer.Typer, tmp_path: Path) -> None:
    instance = _write(tmp_path, "i.json", random_instance("tight", 5))
    made = ["--paths", "3", "--basis", "job"]
    line = CliRunner().invoke(app, ["solve", instance, "--solver", "greedy", "-o", "json", *made]).stdout
    answer = _write(tmp_path, "a.json", line)
    assert CliRunner().invoke(app, ["check", instance, answer, *made]).exit_code == 0
    run = CliRunner().invoke(app, ["check", instance, answer])
    assert run.exit_code == 1
    assert "path-set" in run.stderr


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("{nope", "file"),
        ([], "answer"),
        ({}, "feasible"),
        ({"feasible": True, "assignments": {"t0": 3}}, "assignments.t0"),
        ({"feasible": True, "flows": [{"src": "t0"}]}, "flows.0.dst"),
    ],
)
def test_what_is_no_answer_is_bad_input(app: typer.Typer, tmp_path: Path, content: object, field: str) -> None:
    instance = _write(tmp_path, "i.json", random_instance("thesis", 1))
    run = CliRunner().invoke(app, ["check", instance, _write(tmp_path, "a.json", content), "-o", "json"])
    assert run.exit_code == 2
    assert json.loads(run.stdout)["error"]["field"] == field


def test_an_answer_to_what_is_no_instance_is_bad_input(app: typer.Typer, tmp_path: Path) -> None:
    answer = _write(tmp_path, "a.json", {"feasible": False, "reason": "none"})
    run = CliRunner().invoke(app, ["check", _write(tmp_path, "i.json", {"nodes": []}), answer])
    assert run.exit_code == 2
    assert "i.json: job" in run.stderr
