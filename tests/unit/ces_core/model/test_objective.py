"""L, D and the composite against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest

from ces_core.model.objective import evaluate, metrics_of
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.plan import Plan
from ces_core.model.problem import Basis, Cluster, Problem
from ces_core.network.cache import paths_of


def two_nodes(basis: Basis = "system", weights: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)) -> Problem:
    """Nodes a and b, a switch, a link each way; one flow 10..60 from t0 to t1."""
    cluster = Cluster.make(
        [Node("a", cpu=10, memory=20, cpu_used=2), Node("b", cpu=10, memory=10, memory_used=1), Node("switch")],
        [Link("a", "b", 100, 10), Link("b", "a", 100)],
    )
    tasks = [Task("t0", cpu=4, memory=4), Task("t1", cpu=2, memory=4)]
    return Problem.make(cluster, tasks, [Flow("t0", "t1", 10, 60)], basis=basis, weights=weights)


def test_apart_with_half_of_what_was_hoped_for() -> None:
    problem = two_nodes()
    path = paths_of(problem.cluster.topology).between(0, 1)[0]
    metrics = evaluate(problem, [0, 1], [path], [35.0])
    plan = Plan.of(problem, [0, 1], [path], [35.0])
    assert metrics_of(problem, plan) == metrics
    # CPU 0.6 and 0.2 (std 0.2), memory 0.2 and 0.5 (std 0.15), links 0.45 and 0 (std 0.225); the switch does not count.
    assert metrics.load_imbalance == pytest.approx((0.2 + 0.15 + 0.225) / 3)
    assert metrics.bandwidth_satisfaction == pytest.approx(0.5)
    assert metrics.composite == pytest.approx(0.5 * (1 - 0.575 / 3) + 0.25)


def test_together_the_flow_is_satisfied_and_loads_no_link() -> None:
    problem = two_nodes(weights=(0.0, 0.0, 1.0))
    path = paths_of(problem.cluster.topology).between(0, 0)[0]
    metrics = evaluate(problem, [0, 0], [path], [60.0])
    assert metrics.load_imbalance == pytest.approx(0.05)  # 0.1 and 0
    assert metrics.bandwidth_satisfaction == 1.0


def test_the_job_basis_counts_the_job_alone() -> None:
    problem = two_nodes(basis="job", weights=(1.0, 0.0, 0.0))
    path = paths_of(problem.cluster.topology).between(0, 1)[0]
    assert evaluate(problem, [0, 1], [path], [10.0]).load_imbalance == pytest.approx(0.1)  # 0.4 and 0.2


def test_a_fixed_rate_is_satisfied_and_no_flows_are_too() -> None:
    cluster = Cluster.make([Node("a", cpu=1), Node("b", cpu=1)], [Link("a", "b", 10)])
    tasks = [Task("t0"), Task("t1")]
    fixed = Problem.make(cluster, tasks, [Flow("t0", "t1", 5, 5)])
    path = paths_of(cluster.topology).between(0, 1)[0]
    assert evaluate(fixed, [0, 1], [path], [5.0]).bandwidth_satisfaction == 1.0
    lone = evaluate(Problem.make(cluster, tasks), [0, 1], [], [])
    assert lone.bandwidth_satisfaction == 1.0
    assert not math.isnan(lone.load_imbalance)
