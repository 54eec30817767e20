"""The learned value: incremental updates match its definition, the search uses it, and bad files are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_instances import instances, mild
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ces_core.learned.start.solver import SEARCH_LEARNED, LearnedStartSearch
from ces_core.model.errors import ValueFileError
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.model.objective import bandwidth_satisfaction, load_imbalance
from ces_core.model.parts import Node, Task
from ces_core.model.path import Path as Route
from ces_core.model.plan import Result
from ces_core.model.problem import SLACK, Cluster, Problem
from ces_core.placement.path_choice import better_paths
from ces_core.placement.trial import install
from ces_core.placement.value import LINK_TICKS, NODE_TICKS, SHIPPED, Value, load_value, shipped
from ces_core.placement.view import problem_view
from ces_core.search.annealing import keep
from ces_core.search.answer import planned
from ces_core.search.greedy import GREEDY
from ces_core.search.longrun import SEARCH_LONGRUN
from ces_core.search.solver import OPTIMISTIC, SEARCH, Bench, Search
from ces_core.search.workspace import improve_neighbourhoods, run_annealing
from ces_core.solver import with_lookahead

STEEP = Value((0.1, 0.3, 0.0, 0.2, 0.1, 0.2), (0.02, 0.01, 0.005), 0.25)
NO_VALUE = Value((0.0,) * len(NODE_TICKS), (0.0,) * len(LINK_TICKS), 1.0)
odd = instances() | instances().map(mild)
some = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


def worth(value: Value, problem: Problem, node_used: Any, link_used: Any) -> float:
    """The value of a cluster with this utilisation, from the definition alone."""
    cluster = problem.cluster
    good = []
    for row in range(2):
        capacity = cluster.node_capacity[row]
        unit = capacity[capacity > 0].mean() if (capacity > 0).any() else np.inf
        free = np.maximum(cluster.node_capacity[row] * (1 + SLACK) - node_used[row], 0.0) / unit
        good.append(np.interp(free, (0.0, *NODE_TICKS), np.cumsum((0.0, *value.node))))
    flow = problem.flow_max.mean() if len(problem.flow_max) else np.inf
    media = [link_used[cluster.topology.link_medium == m].sum() for m in range(len(cluster.medium_capacity))]
    used = np.concatenate([link_used, media])
    room = np.maximum(cluster.bandwidth_capacity - used, 0.0) / (flow if flow > 0 else np.inf)
    return float((good[0] * good[1]).sum() + np.interp(room, (0.0, *LINK_TICKS), np.cumsum((0.0, *value.link))).sum())


def objective(value: Value, problem: Problem, result: Result, paths: list[Route], rates: list[float]) -> float:
    """The objective of a decision, from the definition alone."""
    assert result.plan is not None
    cluster, index = problem.cluster, problem.cluster.topology.node_index
    assignment = [index[result.plan.assignments[task.name]] for task in problem.tasks]
    nodes, links = cluster.node_used.copy(), cluster.link_used.copy()
    for t, node in enumerate(assignment):
        nodes[:, node] += problem.demand[t]
    for path, rate in zip(paths, rates, strict=True):
        for link in path.links:
            links[link] += rate
    imbalance = load_imbalance(problem, assignment, paths, rates)
    change = worth(value, problem, nodes, links) - worth(value, problem, cluster.node_used, cluster.link_used)
    return 0.5 * (1.0 - value.balance * imbalance) + 0.5 * bandwidth_satisfaction(problem, paths, rates) + change


@pytest.mark.parametrize("value", [STEEP, NO_VALUE], ids=["steep", "none"])
@some
@given(instance=odd, seed=st.integers(0, 5))
def test_the_score_is_what_the_plan_earns_by_definition(value: Value, instance: dict[str, Any], seed: int) -> None:
    from ces_core.bandwidth.composite import allocation_of

    problem = read_instance(instance)
    assume(problem.homes.any(axis=1).all())
    view = value.on(problem, problem_view(problem))
    bench = Bench.of(view, seed)
    work, state, workspace = bench.work, bench.state, bench.workspace
    install(view, work, state, np.argmax(view.fits, axis=1))
    keep(state, bench.walk)
    run_annealing(workspace, 60, 0.1, 1e-3, 0, 60)
    improve_neighbourhoods(workspace, OPTIMISTIC, min(3, len(problem.tasks)), 50, 6, 60, 60)
    better_paths(view, work, state)
    assume(state.fits[0])
    allocation = allocation_of(problem, view, state)
    result = planned("test", problem, view, state)
    wanted = objective(value, problem, result, list(allocation.paths), list(allocation.bandwidth))
    assert state.score[0] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("regime", REGIMES)
def test_a_value_of_nothing_is_the_plain_search(regime: str) -> None:
    blind = Search("blind", "", value=lambda: NO_VALUE)
    for seed in range(3):
        problem = read_instance(random_instance(regime, seed, tasks=5))
        plain, other = SEARCH.solve(problem), blind.solve(problem)
        assert plain.plan == other.plan
        assert plain.metrics == other.metrics


def test_capacity_for_a_large_task_is_not_fragmented() -> None:
    """The task fits on two nodes; the one with more free capacity would be better balanced."""
    nodes = [Node("roomy", cpu=8, memory=8), Node("tight", cpu=8, memory=8, cpu_used=5, memory_used=5)]
    problem = Problem.make(Cluster.make(nodes, []), [Task("t", cpu=3, memory=3)])
    large = Value((0.0, 0.0, 0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0), 1.0)
    plain, ahead = SEARCH.solve(problem), Search("ahead", "", value=lambda: large).solve(problem)
    assert plain.plan is not None
    assert ahead.plan is not None
    assert plain.plan.assignments["t"] == "roomy"
    assert ahead.plan.assignments["t"] == "tight"


def test_the_same_problem_and_seed_give_the_same_plan() -> None:
    problem = read_instance(random_instance("tight", 3, nodes=12, tasks=6))
    assert SEARCH_LONGRUN.solve(problem, seed=4).to_dict() == SEARCH_LONGRUN.solve(problem, seed=4).to_dict()


def test_the_shipped_value_says_how_it_was_learned() -> None:
    value = shipped()
    assert value == load_value(SHIPPED)
    assert value.card is not None
    assert {"command", "seed", "runs", "settings", "scores"} <= value.card.keys()
    assert any(value.node)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"schema": 0}, "schema 0"),
        ({"node": [0.1]}, "node must be 6"),
        ({"node": [0.1, 0.1, 0.1, -0.1, 0.1, 0.1]}, "from 0 on"),
        ({"link": [0.1, 0.1, "x"]}, "link must be 3"),
        ({"link": None}, "link must be 3"),
        ({"balance": float("nan")}, "balance must be"),
        ({"balance": True}, "balance must be"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    file = tmp_path / "value.json"
    file.write_text(json.dumps(STEEP.to_dict() | change))
    with pytest.raises(ValueFileError, match=told):
        load_value(file)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "\x00", " " * (1 << 17)])
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "value.json"
    with pytest.raises(ValueFileError, match=r"value\.json"):
        load_value(file)
    file.write_text(text)
    with pytest.raises(ValueFileError, match=r"value\.json"):
        load_value(file)


def test_a_written_value_reads_the_same(tmp_path: Path) -> None:
    file = tmp_path / "value.json"
    file.write_text(json.dumps(STEEP.to_dict()))
    again = load_value(file)
    assert (again.node, again.link, again.balance) == (STEEP.node, STEEP.link, STEEP.balance)


@pytest.mark.parametrize("solver", [SEARCH, SEARCH_LEARNED], ids=lambda solver: solver.name)
def test_a_solver_that_can_counts_what_is_left_for_later_jobs(solver: Search | LearnedStartSearch) -> None:
    counting = with_lookahead(solver)
    assert counting == replace(solver, value=shipped)
    assert with_lookahead(counting) is counting
    assert with_lookahead(GREEDY) is GREEDY


def test_a_policy_is_kept_where_what_is_left_counts() -> None:
    policy: Any = object()
    with_policy = replace(SEARCH_LEARNED, policy=policy)
    assert with_policy.with_lookahead().policy is policy
