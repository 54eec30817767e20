"""Rates: minimums, bottlenecks, media, ties, whole numbers; and how near the filler comes to the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from ces_core.bandwidth import allocate, fill
from ces_core.generate import random_instance
from ces_core.instance import read_instance
from ces_core.paths import Path
from ces_core.problem import Cluster, Flow, Link, Node, Problem, Task


def line(*flows: Flow, capacity: float = 100, medium: float | None = None) -> tuple[Problem, list[Path]]:
    """Four tasks on nodes a - b - c - d, in a line; the paths for one task per node."""
    air = None if medium is None else "air"
    links = [Link(a, b, capacity, medium=air) for a, b in ("ab", "bc", "cd")]
    cluster = Cluster.make([Node(n, cpu=1) for n in "abcd"], links, {} if medium is None else {"air": medium})
    problem = Problem.make(cluster, [Task(f"t{i}", cpu=1) for i in range(4)], flows)
    between = cluster.topology.paths.between
    return problem, [between(*ends)[0] for ends in problem.flow_ends(range(4))]


def test_without_a_bottleneck_everyone_gets_the_maximum() -> None:
    assert fill(*line(Flow("t0", "t1", 10, 60), Flow("t1", "t2", 10, 100))) == [60, 100]


def test_minimums_that_do_not_fit_are_refused() -> None:
    assert fill(*line(Flow("t0", "t1", 60, 60), Flow("t0", "t2", 60, 60))) is None
    assert fill(*line(Flow("t0", "t1", 40, 60), Flow("t0", "t2", 60, 60))) == [40, 60]


def test_the_narrow_flow_is_served_before_the_one_that_crosses_more() -> None:
    flows = (Flow("t0", "t3", 10, 100), Flow("t0", "t1", 10, 100), Flow("t1", "t2", 10, 100))
    assert fill(*line(*flows)) == [10, 90, 90]


def test_a_medium_counts_every_crossing() -> None:
    assert fill(*line(Flow("t0", "t2", 10, 100), medium=90)) == [45]
    assert fill(*line(Flow("t0", "t3", 40, 100), medium=90)) is None


def test_tasks_on_one_node_get_the_maximum_and_use_nothing() -> None:
    problem, _ = line(Flow("t0", "t1", 10, 1e9))
    within = problem.cluster.topology.paths.between(0, 0)
    assert fill(problem, within) == [1e9]


def test_the_wider_of_two_equal_ways_is_taken() -> None:
    links = [Link("a", "b", 30), Link("b", "d", 30), Link("a", "c", 80), Link("c", "d", 80)]
    cluster = Cluster.make([Node(n, cpu=1) for n in "abcd"], links)
    problem = Problem.make(cluster, [Task("t0"), Task("t1")], [Flow("t0", "t1", 10, 100)])
    narrow, wide = cluster.topology.paths.between(0, 3)
    found = allocate(problem, [0, 3], [narrow])
    assert found is not None
    assert found.paths == (wide,)
    assert found.bandwidth == (80,)


@pytest.mark.parametrize("seed", range(10))
def test_whole_bits_stay_whole_and_within_capacity(seed: int) -> None:
    rng = np.random.default_rng(seed)
    flows = [
        Flow(f"t{i}", f"t{j}", int(rng.integers(1, 10**9)), int(rng.integers(10**9, 10**10)))
        for i in range(4)
        for j in range(i + 1, 4)
    ]
    problem, paths = line(*flows, capacity=9_999_999_937)
    rates = fill(problem, paths)
    assert rates is not None
    assert all(rate == int(rate) for rate in rates)
    load = [sum(int(r) for r, path in zip(rates, paths, strict=True) if link in path.links) for link in range(3)]
    assert max(load) <= 9_999_999_937
    assert all(rate >= flow.min for rate, flow in zip(rates, flows, strict=True))


def _best_satisfaction(problem: Problem, paths: list[Path]) -> float | None:
    """The optimum over rates by linear programme: sum of (rate - min) / (max - min)."""
    count, resources = len(paths), len(problem.cluster.bandwidth_free)
    use = np.zeros((resources, count))
    for f, path in enumerate(paths):
        for r, times in path.loads:
            use[r, f] = times
    span = problem.flow_max - problem.flow_min
    solved = linprog(
        -1 / span,
        A_ub=use,
        b_ub=problem.cluster.bandwidth_free,
        bounds=list(zip(problem.flow_min, problem.flow_max, strict=True)),
    )
    return float(((solved.x - problem.flow_min) / span).sum()) if solved.success else None


def test_the_filler_is_near_the_linear_programme() -> None:
    gaps = []
    for seed in range(60):
        problem = read_instance(random_instance("tight", seed, tasks=6))
        if not problem.flows:
            continue
        rng = np.random.default_rng(seed)
        between = problem.cluster.topology.paths.between
        ends = problem.flow_ends([int(n) for n in rng.permutation(10)[:6]])
        paths = [between(a, b)[0] for a, b in ends]
        rates, best = fill(problem, paths), _best_satisfaction(problem, paths)
        assert (rates is None) == (best is None)
        if rates is not None and best is not None:
            span = problem.flow_max - problem.flow_min
            gaps.append((best - float(((np.array(rates) - problem.flow_min) / span).sum())) / len(rates))
    assert len(gaps) > 10
    assert min(gaps) > -1e-9
    assert np.mean(gaps) < 0.01
