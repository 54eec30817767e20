"""Paths and rates for a given placement: minimums, bottlenecks, media, ties; distance from the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from ces_core.bandwidth.composite import complete
from ces_core.bandwidth.linear import best_value
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.objective import bandwidth_satisfaction, composite, load_imbalance
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.problem import SLACK, Cluster, Problem
from ces_core.network.cache import paths_of

FOR_SATISFACTION = (1.0, 0.0, 0.0)
"""Weights with which the links' balance does not count."""


def line(*flows: Flow, capacity: float = 100, medium: float | None = None) -> Problem:
    """Four tasks for nodes a - b - c - d, in a line."""
    air = None if medium is None else "air"
    links = [Link(a, b, capacity, medium=air) for a, b in ("ab", "bc", "cd")]
    cluster = Cluster.make([Node(n, cpu=1) for n in "abcd"], links, {} if medium is None else {"air": medium})
    return Problem.make(cluster, [Task(f"t{i}", cpu=1) for i in range(4)], flows, weights=FOR_SATISFACTION)


def rates(problem: Problem, assignment: tuple[int, ...] = (0, 1, 2, 3)) -> tuple[float, ...] | None:
    found = complete(problem, assignment)
    return None if found is None else found.bandwidth


def test_without_a_bottleneck_everyone_gets_the_maximum() -> None:
    assert rates(line(Flow("t0", "t1", 10, 60), Flow("t1", "t2", 10, 100))) == (60, 100)


def test_minimums_that_do_not_fit_are_refused() -> None:
    assert rates(line(Flow("t0", "t1", 60, 60), Flow("t0", "t2", 60, 60))) is None
    assert rates(line(Flow("t0", "t1", 40, 60), Flow("t0", "t2", 60, 60))) == pytest.approx((40, 60))


def test_the_narrow_flow_is_served_before_the_one_that_crosses_more() -> None:
    flows = (Flow("t0", "t3", 10, 100), Flow("t0", "t1", 10, 100), Flow("t1", "t2", 10, 100))
    assert rates(line(*flows)) == pytest.approx((10, 90, 90))


def test_a_medium_counts_every_crossing() -> None:
    assert rates(line(Flow("t0", "t2", 10, 100), medium=90)) == pytest.approx((45,))
    assert rates(line(Flow("t0", "t3", 40, 100), medium=90)) is None


def test_tasks_on_one_node_get_the_maximum_and_use_nothing() -> None:
    assert rates(line(Flow("t0", "t1", 10, 1e9)), (0, 0, 1, 2)) == (1e9,)


def test_no_path_between_the_nodes_is_no_plan() -> None:
    assert rates(line(Flow("t1", "t0", 0, 10))) is None


def test_a_full_node_is_no_matter_of_bandwidth() -> None:
    assert rates(line(Flow("t0", "t3", 10, 60)), (0, 0, 0, 3)) == (60,)


def test_the_wider_of_two_equal_paths_is_taken() -> None:
    links = [Link("a", "b", 30), Link("b", "d", 30), Link("a", "c", 80), Link("c", "d", 80)]
    cluster = Cluster.make([Node(n, cpu=1) for n in "abcd"], links)
    problem = Problem.make(cluster, [Task("t0"), Task("t1")], [Flow("t0", "t1", 10, 100)], weights=FOR_SATISFACTION)
    found = complete(problem, [0, 3])
    assert found is not None
    assert found.paths == (paths_of(cluster.topology).between(0, 3)[1],)
    assert found.bandwidth == pytest.approx((80,))


def test_a_rate_is_held_back_where_it_costs_more_balance_than_it_satisfies() -> None:
    links = [Link("a", "b", 100), *(Link(x, y, 100) for x, y in ("ba", "bc", "cb", "ac", "ca"))]
    cluster = Cluster.make([Node(n, cpu=1) for n in "abc"], links)
    tasks, flow = [Task("t0"), Task("t1")], Flow("t0", "t1", 0, 100)
    balanced = complete(Problem.make(cluster, tasks, [flow], weights=(0, 0, 10)), [0, 1])
    satisfied = complete(Problem.make(cluster, tasks, [flow], weights=(0, 0, 1)), [0, 1])
    assert balanced is not None
    assert satisfied is not None
    assert balanced.bandwidth == pytest.approx((0,))
    assert satisfied.bandwidth == pytest.approx((100,))


@pytest.mark.parametrize("seed", range(10))
def test_rates_rounded_down_to_whole_bits_keep_capacity_and_minimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    flows = [
        Flow(f"t{i}", f"t{j}", int(rng.integers(1, 10**9)), int(rng.integers(10**9, 10**10)))
        for i in range(4)
        for j in range(i + 1, 4)
    ]
    problem = line(*flows, capacity=9_999_999_937)
    found = complete(problem, (0, 1, 2, 3))
    assert found is not None
    whole = [int(rate) for rate in found.bandwidth]
    load = [sum(r for r, path in zip(whole, found.paths, strict=True) if link in path.links) for link in range(3)]
    assert max(load) <= 9_999_999_937
    assert all(rate >= flow.min for rate, flow in zip(whole, flows, strict=True))


@pytest.mark.parametrize("regime", ["thesis", "tight", "scarce"])
def test_rates_are_near_the_optimum_of_the_linear_programme(regime: str) -> None:
    gaps = []
    for seed in range(60):
        problem = read_instance(random_instance(regime, seed, tasks=6))
        assignment = np.random.default_rng(seed).integers(0, 10, 6).tolist()
        found = complete(problem, assignment)
        if found is None:
            continue
        for f, rate in enumerate(found.bandwidth):
            assert problem.flow_min[f] <= rate <= problem.flow_max[f]
        load = np.zeros(len(problem.cluster.bandwidth_free))
        for path, rate in zip(found.paths, found.bandwidth, strict=True):
            for r, times in path.loads:
                load[r] += times * rate
        slack = 10 * SLACK * problem.cluster.bandwidth_capacity
        assert (load <= problem.cluster.bandwidth_free + slack).all()
        best = best_value(problem, [(path,) for path in found.paths])
        assert best is not None
        nothing = load_imbalance(problem, assignment, found.paths, [0.0] * len(found.paths))
        spread = load_imbalance(problem, assignment, found.paths, found.bandwidth) - nothing
        gaps.append(best.value - composite(spread, bandwidth_satisfaction(problem, found.paths, found.bandwidth)))
    assert len(gaps) > (20 if regime != "scarce" else 3)
    assert min(gaps) > -1e-6
    assert np.mean(gaps) < 1e-4


def test_for_satisfaction_alone_rates_reach_the_linear_programme() -> None:
    gaps = []
    for seed in range(60):
        drawn = read_instance(random_instance("tight", seed, tasks=6))
        problem = Problem.make(drawn.cluster, drawn.tasks, drawn.flows, weights=FOR_SATISFACTION)
        found = complete(problem, np.random.default_rng(seed).permutation(10)[:6].tolist())
        if found is None:
            continue
        best = best_value(problem, [(path,) for path in found.paths])
        assert best is not None
        gaps.append(best.satisfaction - bandwidth_satisfaction(problem, found.paths, found.bandwidth))
    assert len(gaps) > 10
    assert min(gaps) > -1e-6
    assert np.mean(gaps) < 1e-3
