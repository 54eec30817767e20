"""Solvers of other packages are loaded by name: a broken one breaks nothing but itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import ces_core.registry as registry
from ces_client.cli import solve as commands
from ces_core.model.errors import BrokenSolverError, UnknownSolverError

SOURCE = """
class Tabu:
    name, summary = "tabu", "third-party"
    def solve(self, problem, *, seed=0, time_limit_s=None):
        raise NotImplementedError
TABU = Tabu()
class GRASP(Tabu):
    pass
class Endless(Tabu):
    def solve(self, problem, *, seed=0):
        raise NotImplementedError
class Plain(Tabu):
    def solve(self, problem):
        raise NotImplementedError
class Open(Tabu):
    def solve(self, problem, **settings):
        raise NotImplementedError
ENDLESS, PLAIN, OPEN = Endless(), Plain(), Open()
NUMBER = 5
"""


@pytest.fixture(autouse=True)
def _others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "tabu_solver.py").write_text(SOURCE)
    (tmp_path / "torn_solver.py").write_text("raise RuntimeError('no licence')\n")
    (tmp_path / "leaving_solver.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    named = {
        "tabu": "tabu_solver:TABU",
        "class": "tabu_solver:Tabu",
        "capitals": "tabu_solver:GRASP",
        "missing": "tabu_solver:TABO",
        "number": "tabu_solver:NUMBER",
        "endless": "tabu_solver:ENDLESS",
        "plain": "tabu_solver:PLAIN",
        "open": "tabu_solver:OPEN",
        "torn": "torn_solver:X",
        "leaving": "leaving_solver:X",
        "absent": "not_installed_anywhere:X",
        "search": "torn_solver:X",  # the core's own is not replaced
    }
    points = [EntryPoint(name, value, "ces.solvers") for name, value in named.items()]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    registry.available.cache_clear()
    yield
    registry.available.cache_clear()
    for module in ("tabu_solver", "torn_solver", "leaving_solver"):
        sys.modules.pop(module, None)


def test_listing_and_asking_for_one_load_no_other() -> None:
    assert {"tabu", "torn", "search"} <= set(registry.available())
    assert len(registry.available()) == len(set(registry.available()))
    assert registry.get_solver("search").name == "search"
    assert "tabu_solver" not in sys.modules
    assert registry.get_solver("tabu").summary == "third-party"
    assert registry.get_solver("tabu") is registry.get_solver("tabu")
    assert "torn_solver" not in sys.modules


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("class", "tabu_solver:Tabu names a class, write TABU = Tabu()"),
        ("capitals", "tabu_solver:GRASP names a class, write grasp = GRASP()"),
        ("missing", "has no attribute 'TABO'"),
        ("number", "is no solver"),
        (
            "endless",
            "solve() of tabu_solver:ENDLESS lacks the parameter time_limit_s, write def solve(self, problem, *,",
        ),
        ("plain", "lacks the parameter seed and the parameter time_limit_s, write def"),
        ("torn", "RuntimeError: no licence"),
        ("leaving", "SystemExit: 3"),
        ("absent", "No module named 'not_installed_anywhere'"),
    ],
)
def test_a_broken_one_says_why_when_it_is_asked_for(name: str, reason: str) -> None:
    with pytest.raises(BrokenSolverError) as caught:
        registry.get_solver(name)
    assert reason in str(caught.value)
    assert isinstance(caught.value, UnknownSolverError)  # whoever expects an unknown one handles it


def test_one_that_takes_any_keyword_lacks_none() -> None:
    assert registry.get_solver("open").name == "tabu"


def test_an_unknown_one_is_unknown_still() -> None:
    with pytest.raises(UnknownSolverError, match=r"no solver is called 'magic'; known: .*tabu"):
        registry.get_solver("magic")


def ces(*words: str, code: int = 0) -> str:
    app = typer.Typer()
    app.command()(commands.solve)
    app.command()(commands.solvers)
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code, result.output
    return result.output


def test_the_list_names_what_is_broken() -> None:
    summaries = {each["name"]: each["summary"] for each in json.loads(ces("solvers", "-o", "json"))}
    assert summaries["tabu"] == "third-party"
    assert summaries["torn"] == "broken: RuntimeError: no licence"
    assert summaries["class"].startswith("broken: tabu_solver:Tabu names a class")
    assert summaries["endless"].startswith("broken: solve() of tabu_solver:ENDLESS lacks the parameter time_limit_s")
    assert not summaries["search"].startswith("broken")
    assert "broken" in ces("solvers")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("torn", "RuntimeError: no licence"),
        ("endless", "solve() of tabu_solver:ENDLESS lacks the parameter time_limit_s"),
    ],
)
def test_a_broken_one_is_bad_input_for_solving(tmp_path: Path, name: str, reason: str) -> None:
    said = ces("solve", "--solver", name, str(tmp_path / "x.json"), code=2)
    assert f"the solver '{name}' is broken: {reason}" in said
