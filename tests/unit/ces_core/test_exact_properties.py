"""What a proof must survive: other solvers, other names, other units."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from core_instances import instances, rescaled
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.checker import check
from ces_core.generate import random_instance
from ces_core.instance import read_instance
from ces_core.plan import Result
from ces_core.problem import Basis
from ces_core.solvers import SOLVERS
from ces_core.solvers.exact import EXACT

OTHERS = [solver for solver in set(SOLVERS.values()) if solver is not EXACT]
NEVER_WORSE_BY = 1e-9


def closed(result: Result) -> None:
    """The answer is a proof."""
    if result.metrics is None:
        assert result.reason is not None
        assert result.reason.proven
    else:
        assert result.bound is not None
        assert 0.0 <= result.bound - result.metrics.composite <= 1e-9


@settings(max_examples=60, deadline=None)
@given(instance=instances(), basis=st.sampled_from(["system", "job"]))
def test_no_other_solver_is_better(instance: dict[str, Any], basis: Basis) -> None:
    problem = read_instance(instance, basis=basis)
    exact = EXACT.solve(problem)
    closed(exact)
    assert check(instance, exact.to_dict(), basis=basis) == []
    for solver in OTHERS:
        other = solver.solve(problem)
        if other.metrics is not None:
            assert exact.metrics is not None, solver.name
            assert other.metrics.composite <= exact.metrics.composite + NEVER_WORSE_BY, solver.name
        if exact.metrics is not None and other.bound is not None:
            assert other.bound >= exact.metrics.composite - NEVER_WORSE_BY, solver.name


@pytest.mark.parametrize("regime", ["thesis", "tight", "scarce"])
@pytest.mark.parametrize("seed", range(6))
def test_ten_nodes_are_solved_to_the_end(regime: str, seed: int) -> None:
    problem = read_instance(random_instance(regime, 300 + seed, nodes=10, tasks=3 + seed % 5))
    exact = EXACT.solve(problem)
    closed(exact)
    search = SOLVERS["search"].solve(problem, seed=1)
    if search.metrics is not None:
        assert exact.metrics is not None
        assert search.metrics.composite <= exact.metrics.composite + NEVER_WORSE_BY


@settings(max_examples=40, deadline=None)
@given(instance=instances(), shuffle=st.randoms(use_true_random=False))
def test_names_and_order_of_nodes_change_nothing(instance: dict[str, Any], shuffle: random.Random) -> None:
    names = [node["name"] for node in instance["nodes"]]
    new = dict(zip(names, shuffle.sample(names, len(names)), strict=True))
    ends = new | {f"@{name}": f"@{other}" for name, other in new.items()}
    renamed = copy.deepcopy(instance)
    for node in renamed["nodes"]:
        node["name"] = new[node["name"]]
    for item in [*renamed["links"], *renamed["job"]["flows"]]:
        item["src"], item["dst"] = ends.get(item["src"], item["src"]), ends.get(item["dst"], item["dst"])
    for task in renamed["job"]["tasks"]:
        if "allowed" in task:
            task["allowed"] = [new[name] for name in task["allowed"]]
    for items in (renamed["nodes"], renamed["links"], renamed["job"]["tasks"], renamed["job"]["flows"]):
        shuffle.shuffle(items)
    same(EXACT.solve(read_instance(instance)), EXACT.solve(read_instance(renamed)))


@settings(max_examples=40, deadline=None)
@given(instance=instances(), factors=st.tuples(*[st.sampled_from([1e-3, 1.0, 7.0, 1e9])] * 3))
def test_units_change_nothing(instance: dict[str, Any], factors: tuple[float, float, float]) -> None:
    # Not powers of two: rounding may differ, so amounts on the very edge are left a little room.
    for node in instance["nodes"]:
        node["cpu"], node["memory"] = node["cpu"] * (1 + 1e-6), node["memory"] * (1 + 1e-6)
    for link in instance["links"]:
        link["bandwidth"] *= 1 + 1e-6
    instance["media"] = {name: value * (1 + 1e-6) for name, value in instance["media"].items()}
    same(EXACT.solve(read_instance(instance)), EXACT.solve(read_instance(rescaled(instance, *factors))))


def same(one: Result, other: Result) -> None:
    assert one.feasible == other.feasible
    if one.metrics is not None and other.metrics is not None:
        assert one.metrics.composite == pytest.approx(other.metrics.composite, abs=NEVER_WORSE_BY)
