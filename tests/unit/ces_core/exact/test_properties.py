"""Invariance of proofs: other solvers, other names, other units."""

from __future__ import annotations

import copy
import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from core_instances import instances, rescaled
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize

from ces_core.checker import check
from ces_core.exact.solver import EXACT
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.plan import Result
from ces_core.model.problem import Basis
from ces_core.registry import SOLVERS

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


@pytest.mark.parametrize("used", [0.5, 0.25, 0.125])
@pytest.mark.parametrize("most", [3.0, 7.0])
def test_a_plan_that_loads_all_links_alike_is_proven(used: float, most: float) -> None:
    """There the deviation has a kink: it is worth neither more of the rate nor less."""
    instance = {
        "nodes": [{"name": f"n{i}", "cpu": 0.0, "memory": float(i == 1)} for i in range(3)],
        "links": [
            {"src": "n0", "dst": "n1", "bandwidth": 1.0},
            {"src": "n0", "dst": "n2", "bandwidth": 1.0, "bandwidth_used": used},
        ],
        "job": {
            "tasks": [{"name": "t0", "cpu": 0.0, "memory": 0.0, "allowed": ["n1"]}],
            "flows": [{"src": "@n0", "dst": "t0", "min": 0.0, "max": most}],
        },
    }
    exact = EXACT.solve(read_instance(instance))
    closed(exact)
    assert exact.metrics is not None
    assert exact.metrics.load_imbalance == pytest.approx(0.0, abs=1e-6) or most == 3.0


TWO = {"links": [("a", "b"), ("b", "a")], "flows": [("a", "b"), ("b", "a"), ("a", "b")]}
LINE = {"links": [("a", "b"), ("b", "c")], "flows": [("a", "c"), ("a", "b"), ("b", "c")]}
RING = {"links": [("a", "b"), ("b", "c"), ("c", "a")], "flows": [("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")]}


@pytest.mark.parametrize("shape", [TWO, LINE, RING], ids=["both ways", "over all links", "ring"])
@pytest.mark.parametrize("weight", [1 / 3, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_rates_are_better_than_the_bound(shape: dict[str, Any], weight: float, seed: int) -> None:
    """Rates alone are left to decide, and another method decides them."""
    chance = random.Random(seed)
    links = [
        {"src": a, "dst": b, "bandwidth": 4.0, "bandwidth_used": chance.choice([0.0, 0.0, 1.0])}
        for a, b in shape["links"]
    ]
    ends = [(f"{src}{i}", f"{dst}{i}", src, dst) for i, (src, dst) in enumerate(shape["flows"])]
    tasks = [
        {"name": name, "cpu": 0.0, "memory": 0.0, "allowed": [at]}
        for s, d, a, b in ends
        for name, at in ((s, a), (d, b))
    ]
    flows = [{"src": s, "dst": d, "min": 0.0, "max": chance.choice([1.0, 3.0, 7.0])} for s, d, _, _ in ends]
    instance = {
        "nodes": [{"name": name, "cpu": 1.0, "memory": 1.0} for name in "abc"],
        "links": links,
        "job": {"tasks": tasks, "flows": flows},
        "weights": [0.0, 0.0, weight],
    }
    exact = EXACT.solve(read_instance(instance))
    assert exact.plan is not None
    assert exact.bound is not None
    paths = [flow.path for flow in exact.plan.flows]
    crossed = np.array([[float((a, b) in pairwise(path)) for path in paths] for a, b in shape["links"]])
    capacity = np.array([link["bandwidth"] for link in links])
    used = np.array([link["bandwidth_used"] for link in links])
    most = np.array([flow["max"] for flow in flows])

    def composite(rates: NDArray[np.float64]) -> float:
        spread = float(np.std((used + crossed @ rates) / capacity))
        return 0.5 * (1.0 - weight * spread) + 0.5 * float(np.mean(rates / most))

    room = LinearConstraint(crossed, -np.inf, capacity - used)
    starts = [np.array([flow.bandwidth for flow in exact.plan.flows]), 0.01 * most, 0.2 * most]
    for start in starts:
        found = minimize(
            lambda x: -composite(x), start, method="SLSQP", bounds=[(0.0, m) for m in most], constraints=room
        )
        rates = np.clip(found.x, 0.0, most)
        if (crossed @ rates <= capacity - used + 1e-9).all():
            assert composite(rates) <= exact.bound + 1e-7


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
