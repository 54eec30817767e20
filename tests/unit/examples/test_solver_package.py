"""The example of a solver in a package of its own: its entry point names a solver that keeps every rule."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from ces_core.checker import check
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.registry import Available
from ces_core.solver import Solver

PACKAGE = Path(__file__).resolve().parents[3] / "examples/solver-package"


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> Iterator[Solver]:
    monkeypatch.syspath_prepend(PACKAGE)
    named = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["entry-points"]["ces.solvers"]
    (name,) = named
    yield Available({}, [EntryPoint(name, named[name], "ces.solvers")])[name]
    sys.modules.pop(named[name].partition(":")[0], None)


@pytest.mark.parametrize("regime", ["thesis", "tight", "scarce"])
def test_it_keeps_every_rule_and_says_why_where_it_finds_no_place(together: Solver, regime: str) -> None:
    placed = 0
    for seed in range(20):
        instance = random_instance(regime, seed)
        answer = together.solve(read_instance(instance)).to_dict()
        assert check(instance, answer) == []
        placed += answer["feasible"]
    assert placed


def test_tasks_that_fit_on_one_node_share_it(together: Solver) -> None:
    instance = random_instance("thesis", 1, tasks=3)
    for node in instance["nodes"]:
        node.update(cpu=200.0, memory=200.0, cpu_used=0.0, memory_used=0.0)
    plan = together.solve(read_instance(instance)).plan
    assert plan is not None
    assert len(set(plan.assignments.values())) == 1


def test_a_task_that_fits_nowhere_is_named(together: Solver) -> None:
    instance = random_instance("thesis", 1)
    instance["job"]["tasks"][1]["cpu"] = 1000.0
    answer = together.solve(read_instance(instance)).to_dict()
    assert not answer["feasible"]
    assert answer["reason_detail"]["task"] == "t1"
