"""Which nodes are near, what that gains where paths are long, and what is different under a time limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ces_core.checker import check
from ces_core.learned.start.nearness import APART, NOWHERE, flows_cost, hops_of
from ces_core.learned.start.regions import REGION_SIZE, REGIONS, WIDE_SIZE, rule_of
from ces_core.learned.start.ruin_and_recreate import heat_of, ruin_and_recreate
from ces_core.learned.start.solver import MANY, SEARCH_LEARNED, dives_of
from ces_core.learned.start.weights import HABITS, shipped
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.placement.candidates import candidates
from ces_core.placement.view import problem_view
from ces_core.search.solver import CONSTRUCTIONS, with_start_plan


def sparse(regime: str, seed: int, nodes: int = 100) -> dict[str, Any]:
    """Sixteen tasks on a network of degree 4."""
    return random_instance(regime, seed, nodes=nodes, tasks=16, link_probability=4 / (nodes - 1))


def test_hops_are_the_mean_of_both_ways() -> None:
    """A ring that leads one way, and a node beside it."""
    nodes = [Node(name, cpu=1.0, memory=1.0) for name in "abcd"]
    cluster = Cluster.make(nodes, [Link(*ends, 1.0) for ends in ("ab", "bc", "ca")])
    hops = hops_of(problem_view(Problem.make(cluster, [Task("x", cpu=0.5)], [])))
    assert hops[:3, :3].tolist() == [[0.0, 1.5, 1.5], [1.5, 0.0, 1.5], [1.5, 1.5, 0.0]]
    assert hops[3].tolist() == [APART, APART, APART, 0.0]


def test_flows_cost_what_they_lose() -> None:
    """Both ends are fixed, and the link carries half of the range; without balance only satisfaction counts."""
    nodes = [Node(name, cpu=1.0, memory=1.0) for name in "ab"]
    cluster = Cluster.make(nodes, [Link("a", "b", 2.0), Link("b", "a", 2.0)])
    view = problem_view(Problem.make(cluster, [Task("x", cpu=0.5)], [Flow("@a", "@b", 1.0, 3.0)]))
    bench = with_start_plan(view._replace(weights=np.array([0.5, 0.5, 0.0])))
    assert flows_cost(bench.view, bench.state) == pytest.approx(0.25)
    assert heat_of(view, 0.01) == pytest.approx(2.0)


def test_near_nodes_gain_where_paths_are_long() -> None:
    """The same work from the same plans."""
    weights = shipped().remake.copy()
    weights[HABITS.index("breadth")] = 20.0
    gains = []
    for seed in range(40, 52):
        view = problem_view(read_instance(sparse("tight", seed)))
        scores = []
        for hops in (NOWHERE, hops_of(view)):
            bench = with_start_plan(view)
            if bench.state.fits[0]:
                ruin_and_recreate(bench.workspace, weights, hops, 1000)
                scores.append(float(bench.walk.best_score[0]))
        gains += np.diff(scores).tolist()
    assert len(gains) > 2
    assert np.mean(gains) > 0.0


@pytest.mark.parametrize("nodes", [100, 300])
@pytest.mark.parametrize("limit", [0.005, 0.1])
def test_plans_under_a_limit_keep_every_capacity(nodes: int, limit: float) -> None:
    for regime in ("thesis", "tight"):
        instance = sparse(regime, 7, nodes)
        result = SEARCH_LEARNED.solve(read_instance(instance), time_limit_s=limit)
        if result.plan is not None:  # on a busy machine there may be no time for one
            assert check(instance, result.to_dict()) == []


def test_no_limit_and_an_infinite_one_mean_the_same() -> None:
    problem = read_instance(sparse("tight", 3, nodes=30))
    none, infinite = (SEARCH_LEARNED.solve(problem, time_limit_s=limit) for limit in (None, float("inf")))
    assert none.plan == infinite.plan


def test_regions_are_larger_where_there_is_time() -> None:
    problem = read_instance(sparse("tight", 3, nodes=400))
    few, more = (len(candidates(problem, rule=rule_of(shipped(), wide))) for wide in (False, True))
    assert few < more
    assert more <= REGIONS * WIDE_SIZE + 16
    assert WIDE_SIZE > REGION_SIZE


def test_one_dive_where_placing_tasks_again_gains_more() -> None:
    drawn = (random_instance("thesis", 1, nodes=n, tasks=8) for n in (10, 60))
    few, dense, far = (problem_view(read_instance(each)) for each in (*drawn, sparse("thesis", 1)))
    assert float(few.fits.sum(axis=1).prod()) < MANY < float(dense.fits.sum(axis=1).prod())
    assert [dives_of(True, view) for view in (few, dense, far)] == [CONSTRUCTIONS, CONSTRUCTIONS, 1]
    assert dives_of(False, far) == CONSTRUCTIONS


def test_nodes_that_are_cut_off_make_no_network_sparse() -> None:
    instance = random_instance("thesis", 1, nodes=60, tasks=8)
    alone = instance["nodes"][0]["name"]
    instance["links"] = [link for link in instance["links"] if alone not in (link["src"], link["dst"])]
    view = problem_view(read_instance(instance))
    assert hops_of(view).max() == APART
    assert dives_of(True, view) == CONSTRUCTIONS
