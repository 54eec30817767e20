"""Each baseline's placement rule, on cases worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ces_core.baselines.baseline import Baseline
from ces_core.baselines.flexitask import FlexiTaskSettings
from ces_core.baselines.flexitask import placer as flexitask
from ces_core.baselines.grc import GrcSettings, node_ranks, ranks, task_ranks
from ces_core.baselines.kubernetes import ResourceWeights, least_allocated
from ces_core.baselines.sequential import View
from ces_core.baselines.smart import SmartSettings, balance, connectivity, efficiency, margin
from ces_core.baselines.smart import placer as smart
from ces_core.baselines.uniform import RandomSettings
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.plan import Result
from ces_core.model.problem import Cluster, Problem
from ces_core.registry import get_solver


def solve(name: str, nodes: list[Node], tasks: list[Task], links: list[Link] | None = None, **more: Any) -> Result:
    problem = Problem.make(Cluster.make(nodes, links or []), tasks, more.pop("flows", ()))
    return get_solver(name).solve(problem, **more)


def placed(name: str, nodes: list[Node], tasks: list[Task], links: list[Link] | None = None, **more: Any) -> list[str]:
    result = solve(name, nodes, tasks, links, **more)
    assert result.plan is not None
    return [result.plan.assignments[task.name] for task in tasks]


def both_ways(*links: tuple[str, str, float]) -> list[Link]:
    return [Link(x, y, width) for a, b, width in links for x, y in ((a, b), (b, a))]


def node(name: str, capacity: float, used: float = 0.0, memory_used: float | None = None, **more: Any) -> Node:
    """A node with as much memory as CPU."""
    rest = used if memory_used is None else memory_used
    return Node(name, cpu=capacity, memory=capacity, cpu_used=used, memory_used=rest, **more)


T = Task("t", cpu=1, memory=1)


def test_least_allocated_takes_the_emptier_node_and_most_allocated_the_fuller() -> None:
    nodes = [node("a", 4, 2), node("b", 4, 1), node("c", 4, 3.5)]
    assert placed("least-allocated", nodes, [T]) == ["b"]
    assert placed("most-allocated", nodes, [T]) == ["a"]  # c has no room


def test_allocation_counts_the_task_itself() -> None:
    # Before: 0.2 and 0.25 in use. With the task: 0.6 of the small node, 0.45 of the large one.
    nodes = [node("small", 5, 1), node("large", 10, 2.5)]
    assert placed("least-allocated", nodes, [Task("t", cpu=2, memory=2)]) == ["large"]


def test_tasks_of_the_job_count_for_those_after_them_and_ties_go_by_index() -> None:
    assert placed("least-allocated", [node("a", 4), node("b", 4)], [T, Task("u", cpu=1, memory=1)]) == ["a", "b"]
    assert placed("most-allocated", [node("a", 4), node("b", 4)], [T, Task("u", cpu=1, memory=1)]) == ["a", "a"]


def test_weights_of_resources() -> None:
    nodes = [node("a", 10, used=1, memory_used=8), node("b", 10, used=5, memory_used=2)]
    problem = Problem.make(Cluster.make(nodes, []), [T])
    for weights, expected in ((ResourceWeights(), "b"), (ResourceWeights(cpu=1, memory=0), "a")):
        plan = Baseline("x", "", least_allocated(weights)).solve(problem).plan
        assert plan is not None
        assert plan.assignments == {"t": expected}


def test_kubernetes_weighs_balance_against_emptiness() -> None:
    # With the task, a: shares 0.2 and 0.6, free 0.6, deviation 0.2; b: shares 0.45 and 0.45, free 0.55, deviation 0.
    nodes = [node("a", 10, used=1, memory_used=5), node("b", 20, used=8)]
    assert placed("least-allocated", nodes, [T]) == ["a"]
    assert placed("kubernetes", nodes, [T]) == ["b"]


def test_best_fit_leaves_the_least_in_absolute_terms() -> None:
    # With the task 6 of 20 are left on one, 4 of 5 on the other: the larger share, the smaller amount.
    nodes = [node("large", 20, 13), node("small", 5)]
    assert placed("best-fit", nodes, [T]) == ["small"]
    assert placed("most-allocated", nodes, [T]) == ["large"]


def test_first_fit_decreasing_places_the_largest_first() -> None:
    nodes = [node("a", 4), node("b", 4)]
    tasks = [Task("small", cpu=2), Task("large", cpu=1, memory=3.5), Task("middle", cpu=2.5)]
    # large goes to a, middle beside it, where 3 CPU are left; then small finds only 0.5 there.
    assert placed("first-fit-decreasing", nodes, tasks) == ["b", "a", "a"]
    in_order = [Task("s", cpu=2), Task("m", cpu=2), Task("l", cpu=3), Task("n", cpu=1)]
    assert placed("first-fit-decreasing", nodes, in_order) == ["b", "b", "a", "a"]


def test_flexitask_leaves_out_loaded_nodes_and_says_so() -> None:
    nodes = [node("busy", 100, 90), node("peaky", 10, 5), node("idle", 10, 1)]
    problem = Problem.make(Cluster.make(nodes, []), [Task("t", cpu=3, memory=3)])
    result = Baseline("x", "", flexitask(FlexiTaskSettings(average=0.8, peak=0.75))).solve(problem)
    assert result.plan is not None
    assert result.plan.assignments == {"t": "idle"}
    assert result.considered.refused("t") == {"busy": "policy", "peaky": "policy"}
    strict = Baseline("x", "", flexitask(FlexiTaskSettings(average=0.05))).solve(problem)
    assert strict.reason is not None
    assert (strict.reason.code, strict.reason.proven, strict.reason.task) == ("packing", False, "t")


def test_flexitask_turns_away_from_the_node_it_just_chose() -> None:
    nodes = [node("a", 100), node("b", 100, 20)]
    tasks = [Task("t", cpu=1, memory=1), Task("u", cpu=1, memory=1)]
    # The second task: a is emptier by 0.19, its heat is 1/2.
    assert placed("flexitask", nodes, tasks) == ["a", "b"]
    problem = Problem.make(Cluster.make(nodes, []), tasks)
    plan = Baseline("x", "", flexitask(FlexiTaskSettings(heat=0))).solve(problem).plan
    assert plan is not None
    assert set(plan.assignments.values()) == {"a"}


def test_smart_s_factors() -> None:
    nodes = [node("a", 10, used=2, memory_used=4), node("b", 10), Node("switch")]
    links = [Link("a", "b", 30), Link("b", "a", 50, bandwidth_used=20), Link("b", "switch", 40)]
    problem = Problem.make(Cluster.make(nodes, links), [Task("t", cpu=2, memory=2)])
    used = np.array(problem.cluster.node_used)
    view = View(problem, 0, problem.demand[0], used, np.zeros(3, dtype=np.int64))
    assert efficiency(view) == pytest.approx([0.5, 0.2, 0.0])  # (0.4 + 0.6) / 2, (0.2 + 0.2) / 2
    # The means are 0.1 and 0.2; with the task a has 0.4 and 0.6, b has 0.2 and 0.2.
    assert balance(view)[:2] == pytest.approx([1 - (0.3 + 0.4) / 2, 1 - (0.1 + 0.0) / 2])
    assert connectivity(problem) == pytest.approx([0.6, 1.0, 0.4])  # 60, 100 and 40 free
    assert margin(view)[:2] == pytest.approx([0.4, 0.8])


def test_smart_goes_by_its_weights() -> None:
    nodes = [node("full", 10, 5), node("hub", 10, 2), node("empty", 10)]
    problem = Problem.make(Cluster.make(nodes, both_ways(("full", "hub", 10), ("hub", "empty", 10))), [T])
    only = {"efficiency": 0.0, "balance": 0.0, "connectivity": 0.0, "margin": 0.0}
    # Mean use is 0.23; with the task it is 0.6, 0.3 and 0.1.
    for factor, expected in (("efficiency", "full"), ("balance", "hub"), ("connectivity", "hub"), ("margin", "empty")):
        plan = Baseline("x", "", smart(SmartSettings(**(only | {factor: 1.0})))).solve(problem).plan
        assert plan is not None
        assert plan.assignments == {"t": expected}


def test_grc_ranks_of_three_nodes_by_hand() -> None:
    # a - b of width 1, b - c of width 3; capacities 1/4, 1/2, 1/4; d = 1/2.
    # M: a and c get 1/4 and 3/4 of b, b gets all of a and of c. So
    #   a = 1/8 + b/8, c = 1/8 + 3b/8, b = 1/4 + (a + c)/2 = 1/4 + 1/8 + b/4  ->  b = 1/2, a = 3/16, c = 5/16.
    src, dst = np.array([0, 1]), np.array([1, 2])
    found = ranks(np.array([0.25, 0.5, 0.25]), src, dst, np.array([1.0, 3.0]), 0.5)
    assert found == pytest.approx([3 / 16, 1 / 2, 5 / 16], abs=1e-8)


def test_grc_sees_what_is_free_on_nodes_and_links_both_ways() -> None:
    nodes = [node("a", 8, 6), node("b", 4), node("c", 3, 1)]  # free: 2, 4, 2
    links = [Link("a", "b", 0.75), Link("b", "a", 0.25), Link("b", "c", 9, bandwidth_used=6)]
    tasks = [Task("t", cpu=1, memory=1), Task("u", cpu=2, memory=2), Task("v", cpu=1, memory=1)]
    flows = [Flow("t", "u", 0.75, 5), Flow("u", "t", 0.25, 5), Flow("u", "v", 3, 3)]
    problem = Problem.make(Cluster.make(nodes, links), tasks, flows)
    assert node_ranks(problem, problem.cluster.node_used, 0.5) == pytest.approx([3 / 16, 1 / 2, 5 / 16], abs=1e-8)
    assert task_ranks(problem, 0.5) == pytest.approx([3 / 16, 1 / 2, 5 / 16], abs=1e-8)
    result = get_solver("grc").solve(problem)
    assert result.plan is not None
    assert result.plan.assignments == {"u": "b", "v": "c", "t": "a"}


def test_grc_never_puts_two_tasks_on_a_node_but_its_variant_may() -> None:
    nodes = [node("a", 10), node("b", 2)]
    tasks = [Task("t", cpu=2, memory=2), Task("u", cpu=1, memory=1)]
    assert placed("grc", nodes, tasks) == ["a", "b"]
    assert placed("grc-shared", nodes, tasks) == ["a", "a"]
    near = [node("a", 10), node("b", 9)]  # once a holds the first task, b has more left
    assert placed("grc-shared", near, tasks) == ["a", "b"]
    crowded = solve("grc", nodes, [*tasks, Task("v")])
    assert crowded.reason is not None
    assert (crowded.reason.code, crowded.reason.proven) == ("packing", False)
    assert crowded.considered.refused("v") == {"a": "policy", "b": "policy"}


def test_random_draws_evenly_from_all_nodes_and_fails_on_full_ones() -> None:
    nodes = [node("a", 4), node("full", 4, 4), node("b", 4), Node("switch")]
    results = [solve("random", nodes, [T], seed=seed) for seed in range(300)]
    drawn = [result.plan.assignments["t"] if result.plan else "full" for result in results]
    counts = {name: drawn.count(name) for name in ("a", "full", "b")}
    assert sum(counts.values()) == 300
    assert min(counts.values()) > 70  # 100 each, give or take 8
    reasons = [result.reason for result in results if result.reason is not None]
    assert {(reason.code, reason.proven, reason.task) for reason in reasons} == {("packing", False, "t")}
    fitting = [placed("random+fill", nodes, [T], seed=seed)[0] for seed in range(100)]
    assert set(fitting) == {"a", "b"}


@pytest.mark.parametrize(
    "name", ["random+fill", "smart", "flexitask", "least-allocated-blind", "best-fit", "first-fit-decreasing", "grc"]
)
def test_gpus_allowed_nodes_switches_and_data_on_nodes_are_respected(name: str) -> None:
    nodes = [node("a", 4), node("g", 4, 3, gpu=1), Node("switch"), node("b", 4)]
    tasks = [Task("t", cpu=0.5, gpu=1), Task("u", cpu=1, allowed=("b",))]
    links = both_ways(("a", "switch", 50), ("g", "switch", 50), ("b", "switch", 50))
    result = solve(name, nodes, tasks, links, flows=[Flow("@a", "t", 10, 20), Flow("u", "@switch", 10, 20)])
    assert result.plan is not None
    assert result.plan.assignments == {"t": "g", "u": "b"}
    assert [flow.path for flow in result.plan.flows] == [("a", "switch", "g"), ("b", "switch")]
    assert result.considered.refused("u") == {"a": "not-allowed", "g": "not-allowed", "switch": "not-allowed"}


def test_what_no_solver_could_place_is_proven() -> None:
    result = solve("least-allocated", [node("a", 4)], [Task("t", cpu=5)])
    assert result.reason is not None
    assert (result.reason.code, result.reason.proven, result.reason.permanent) == ("cpu-per-node", True, True)


def test_settings_that_make_no_sense_name_their_field() -> None:
    with pytest.raises(ValueError, match=r"SmartSettings\.margin must be a number from 0 up, not -1"):
        SmartSettings(margin=-1)
    with pytest.raises(ValueError, match="at least one of cpu, memory"):
        ResourceWeights(cpu=0, memory=0)
    with pytest.raises(ValueError, match=r"FlexiTaskSettings\.peak must be within 0\.\.1, not 2"):
        FlexiTaskSettings(peak=2)
    with pytest.raises(ValueError, match=r"GrcSettings\.damping must be within 0\.\.0\.999, not 1"):
        GrcSettings(damping=1)
    with pytest.raises(ValueError, match=r"RandomSettings\.levels must be a whole number from 2 up, not 1"):
        RandomSettings(levels=1)
