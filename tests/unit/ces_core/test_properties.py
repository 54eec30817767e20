"""What holds for every instance, not only for those that came to mind."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from core_instances import instances, rescaled
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.checker import check
from ces_core.model.instance import read_instance
from ces_core.model.problem import Basis
from ces_core.registry import get_solver


@settings(max_examples=150, deadline=None)
@given(
    instance=instances(),
    basis=st.sampled_from(["system", "job"]),
    seed=st.integers(0, 3),
    paths=st.sampled_from([None, None, 1, 2, 6]),
)
def test_no_plan_breaks_a_rule_and_metrics_are_what_they_say(
    instance: dict[str, Any], basis: Basis, seed: int, paths: int | None
) -> None:
    problem = read_instance(instance, basis=basis, paths=paths)
    result = get_solver().solve(problem, seed=seed)
    assert check(instance, result.to_dict(paths=problem.path_set), basis=basis, paths=paths) == []
    if result.reason is not None:
        assert result.reason.text()
        if result.reason.needed is not None and result.reason.available is not None:
            assert result.reason.needed >= result.reason.available


@settings(max_examples=60, deadline=None)
@given(instance=instances())
def test_units_change_nothing(instance: dict[str, Any]) -> None:
    # Powers of two, so that the arithmetic is the same to the last bit: millicores, bytes and bit/s in size.
    here = get_solver().solve(read_instance(instance))
    there = get_solver().solve(read_instance(rescaled(instance, 2.0**10, 2.0**20, 2.0**20)))
    assert here.feasible == there.feasible
    if here.plan is not None and there.plan is not None and here.metrics is not None:
        assert here.plan.assignments == there.plan.assignments
        assert here.metrics == there.metrics
    elif here.reason is not None and there.reason is not None:
        assert here.reason.code == there.reason.code


# Fixed examples: a bounded search promises this in practice, not in principle.
@settings(max_examples=100, deadline=None, derandomize=True)
@given(instance=instances(), shuffle=st.randoms(use_true_random=False))
def test_relabelling_nodes_keeps_what_is_known(instance: dict[str, Any], shuffle: random.Random) -> None:
    names = [node["name"] for node in instance["nodes"]]
    others = shuffle.sample(names, len(names))
    new = dict(zip(names, others, strict=True))
    new |= {f"@{name}": f"@{other}" for name, other in new.items()}
    renamed = copy.deepcopy(instance)
    for node in renamed["nodes"]:
        node["name"] = new[node["name"]]
    shuffle.shuffle(renamed["nodes"])
    for item in [*renamed["links"], *renamed["job"]["flows"]]:
        item["src"], item["dst"] = new.get(item["src"], item["src"]), new.get(item["dst"], item["dst"])
    for task in renamed["job"]["tasks"]:
        if "allowed" in task:
            task["allowed"] = [new[name] for name in task["allowed"]]
    here, there = (get_solver().solve(read_instance(data)) for data in (instance, renamed))
    # What is proven must not depend on names; a search that gave up may have missed a place.
    for one, other in ((here, there), (there, here)):
        if one.reason is not None and one.reason.proven:
            assert not other.feasible
    assert here.feasible == there.feasible


def test_rounding_refuses_nothing_that_fits() -> None:
    instance = {
        "nodes": [{"name": "a", "cpu": 0.3, "cpu_used": 0.1}, {"name": "b", "cpu": 0.1}],
        "links": [],
        "job": {"tasks": [{"name": "t", "cpu": 0.2}, {"name": "u", "cpu": 0.1}]},
    }
    # 0.1 + 0.2 exceeds 0.3 by an ulp: rounding must not refuse what fits.
    result = get_solver().solve(read_instance(instance))
    assert result.plan is not None
    assert result.metrics is not None
    assert result.metrics.load_imbalance == pytest.approx(0.0)
    assert check(instance, result.to_dict()) == []
