"""Bandwidth by linear programming against scipy, and the guarantee of its bound."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from core_instances import instances
from hypothesis import given, settings
from hypothesis import strategies as st
from rates_reference import reference_rates

from ces_core.bandwidth.composite import complete
from ces_core.bandwidth.linear import Rates, best_value
from ces_core.exact.form import form
from ces_core.exact.leaf_rates import best_rates
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.objective import bandwidth_satisfaction, evaluate, load_imbalance
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.path import Path
from ces_core.model.problem import Cluster, Problem
from ces_core.network.cache import paths_for
from ces_core.placement.view import problem_view

CLOSE = 2e-9
STOPS_SHORT = 1e-7
"""So far the reference may stay below the best: its linear programs have a tolerance."""


def placed(problem: Problem, seed: int) -> tuple[list[int], list[Path]] | None:
    """Tasks on any nodes at all, flows on one of their paths; None where some flow has none."""
    rng = np.random.default_rng(seed)
    assignment = rng.integers(0, len(problem.cluster.topology.nodes), len(problem.tasks)).tolist()
    ties = [paths_for(problem).between(*ends) for ends in problem.flow_ends(assignment)]
    if not all(ties):
        return None
    return assignment, [paths[rng.integers(len(paths))] for paths in ties]


def within_capacities(problem: Problem, paths: list[Path], rates: Rates) -> None:
    load = np.zeros(len(problem.cluster.bandwidth_capacity))
    for path, rate in zip(paths, rates.bandwidth, strict=True):
        for r, times in path.loads:
            load[r] += times * rate
    assert (load <= problem.cluster.bandwidth_free + 1e-12 * problem.cluster.bandwidth_capacity).all()
    assert (rates.bandwidth >= problem.flow_min).all()
    assert (rates.bandwidth <= problem.flow_max).all()


@settings(max_examples=80, deadline=None)
@given(instance=instances(), basis=st.sampled_from(["system", "job"]), seed=st.integers(0, 5))
def test_rates_are_those_that_scipy_finds(instance: dict, basis: str, seed: int) -> None:
    problem = read_instance(instance, basis=basis)
    found = placed(problem, seed)
    if found is None:
        return
    assignment, paths = found
    alone = [(path,) for path in paths]
    for weight in (0.0, problem.weights[2]):
        bandwidth_only = dataclasses.replace(problem, weights=(0.0, 0.0, weight))
        rates = best_value(bandwidth_only, alone)
        reference = reference_rates(problem, paths, weight)
        assert (rates is None) == (reference is None)
        if rates is None or reference is None:
            continue
        within_capacities(problem, paths, rates)
        satisfaction = bandwidth_satisfaction(problem, paths, rates.bandwidth.tolist())
        assert rates.satisfaction == pytest.approx(satisfaction, abs=1e-9)
        value = satisfaction - load_imbalance(bandwidth_only, assignment, paths, rates.bandwidth.tolist())
        assert reference[0] - CLOSE <= value <= reference[0] + STOPS_SHORT


@pytest.mark.parametrize("seed", range(40))
def test_compiled_rates_are_those_of_the_linear_program(seed: int) -> None:
    problem = read_instance(random_instance(("tight", "scarce")[seed % 2], seed))
    found = placed(problem, seed)
    assert found is not None
    assignment, paths = found
    count = len(problem.cluster.topology.nodes)
    view = problem_view(problem, np.arange(count))
    chosen = [
        int(view.pair_first[a * count + b]) + paths_for(problem).between(a, b).index(path)
        for (a, b), path in zip(problem.flow_ends(assignment), paths, strict=True)
    ]
    rates = np.zeros(len(paths))
    cost, proven = best_rates(form(view), np.array(chosen, dtype=np.int64), rates)
    linear = best_value(problem, [(path,) for path in paths])
    if linear is None:
        assert cost == np.inf
        return
    assert cost == pytest.approx(2.0 * (1.0 - linear.value), abs=1e-10)
    assert cost - 1e-11 <= proven <= cost


@pytest.mark.parametrize("seed", range(20))
def test_splitting_over_equally_short_paths_is_never_worse(seed: int) -> None:
    problem = read_instance(random_instance("tight", seed))
    assignment = [t % 10 for t in range(len(problem.tasks))]
    single = complete(problem, assignment)
    ties = [paths_for(problem).between(*ends) for ends in problem.flow_ends(assignment)]
    split = best_value(problem, ties)
    if split is None:
        assert single is None
        return
    if single is not None:
        bandwidth_only = dataclasses.replace(problem, weights=(0.0, 0.0, problem.weights[2]))
        value = evaluate(bandwidth_only, assignment, single.paths, single.bandwidth).composite
        assert split.bound >= value - 1e-9
    assert split.bound >= split.value - 1e-12


def test_the_shorter_range_comes_first_where_satisfaction_alone_counts() -> None:
    instance = {
        "nodes": [{"name": "a", "cpu": 9.0}, {"name": "b", "cpu": 9.0}],
        "links": [{"src": "a", "dst": "b", "bandwidth": 50.0}],
        "job": {
            "tasks": [{"name": "t"}, {"name": "u"}, {"name": "v"}],
            "flows": [{"src": "t", "dst": "u", "min": 10, "max": 60}, {"src": "t", "dst": "v", "min": 10, "max": 30}],
        },
    }
    problem = dataclasses.replace(read_instance(instance), weights=(0.0, 0.0, 0.0))
    path = paths_for(problem).between(0, 1)
    rates = best_value(problem, [path, path])
    assert rates is not None
    # The second flow has the shorter range, so it comes first; the first gets 20 of its 10..60.
    assert rates.bandwidth.tolist() == pytest.approx([20.0, 30.0])
    assert rates.satisfaction == pytest.approx((0.2 + 1.0) / 2)


def test_a_link_that_has_next_to_nothing_left_is_no_hindrance_to_the_program() -> None:
    cluster = Cluster.make([Node("a", cpu=1), Node("b", cpu=1)], [Link("a", "b", 0.5, 0.5), Link("b", "a", 60)])
    flows = [Flow("@a", "@b", 0, 50), Flow("@b", "@a", 10, 50)]
    problem = Problem.make(cluster, [Task("t")], flows)
    paths = [paths_for(problem).between(0, 1), paths_for(problem).between(1, 0)]
    found = best_value(problem, paths)
    assert found is not None
    assert found.bandwidth[0] <= 1e-9
    assert found.bandwidth[1] >= 10
