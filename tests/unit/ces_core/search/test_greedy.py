"""The greedy solver on tiny instances with known answers, and its reasons for infeasible ones."""

from __future__ import annotations

from typing import Any

import pytest

from ces_core.checker import check
from ces_core.model.errors import UnknownSolverError
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance, write_instance
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.plan import Result
from ces_core.model.problem import Cluster, Problem
from ces_core.registry import DEFAULT, SOLVERS, available, get_solver


def wires(*pairs: str, bandwidth: float = 100, **more: Any) -> list[Link]:
    return [Link(a, b, bandwidth, **more) for p in pairs for a, b in ((p[0], p[1]), (p[1], p[0]))]


def solve(
    nodes: list[Node],
    links: list[Link],
    tasks: list[Task],
    flows: list[Flow] | None = None,
    media: dict[str, float] | None = None,
) -> Result:
    problem = Problem.make(Cluster.make(nodes, links, media), tasks, flows or [])
    result = get_solver().solve(problem, seed=0)
    assert check(write_instance(problem), result.to_dict()) == []
    return result


THREE = [Node(name, cpu=4, memory=4) for name in "abc"]


def test_one_task_goes_where_it_evens_the_load() -> None:
    nodes = [Node("a", cpu=4, memory=4, cpu_used=3, memory_used=3), Node("b", cpu=4, memory=4)]
    result = solve(nodes, wires("ab"), [Task("t", cpu=1, memory=1)])
    assert result.plan is not None
    assert result.plan.assignments == {"t": "b"}


def test_a_hub_that_must_be_the_middle_is() -> None:
    nodes = [Node(name, cpu=1, memory=1) for name in "abcd"]
    tasks = [Task(name, cpu=1, memory=1) for name in ("hub", "x", "y", "z")]
    flows = [Flow("hub", name, 60, 100) for name in "xyz"]
    result = solve(nodes, wires("ab", "bc", "bd"), tasks, flows)
    assert result.plan is not None
    assert result.plan.assignments["hub"] == "b"
    assert result.metrics is not None
    assert result.metrics.bandwidth_satisfaction == 1.0


def test_data_on_a_node_draws_its_reader() -> None:
    links = wires("ab", "bc", bandwidth=20)
    result = solve(THREE, links, [Task("t", cpu=1, memory=1)], [Flow("@a", "t", 30, 90)])
    assert result.plan is not None
    assert result.plan.assignments == {"t": "a"}
    assert result.plan.flows[0].bandwidth == 90
    assert result.plan.flows[0].path == ("a",)


def test_allowed_nodes_and_gpus_are_respected() -> None:
    nodes = [*THREE, Node("g", cpu=4, memory=4, gpu=1, cpu_used=3.5)]
    tasks = [Task("t", cpu=0.5, gpu=1), Task("u", cpu=1, allowed=("b",))]
    result = solve(nodes, wires("ab", "bc", "cg"), tasks)
    assert result.plan is not None
    assert result.plan.assignments == {"t": "g", "u": "b"}
    assert result.considered.refused("t") == {"a": "gpu", "b": "gpu", "c": "gpu"}
    assert result.considered.counts("u") == {"not-allowed": 3}


def test_a_shared_medium_limits_what_its_links_give() -> None:
    links = wires("ab", "bc", bandwidth=100, medium="air")
    nodes = [Node(name, cpu=1, memory=1) for name in "abc"]
    tasks = [Task(name, cpu=1, memory=1) for name in "tuv"]
    result = solve(nodes, links, tasks, [Flow("t", "u", 10, 100), Flow("u", "v", 10, 100)], {"air": 120})
    assert result.plan is not None
    assert sum(flow.bandwidth for flow in result.plan.flows) == pytest.approx(120)


def reason(*args: Any) -> dict[str, Any]:
    result = solve(*args)
    assert not result.feasible
    assert result.reason is not None
    return result.reason.to_dict()


def test_cpu_that_no_node_has() -> None:
    nodes = [Node("a", cpu=4, memory=9, cpu_used=3), Node("b", cpu=6, memory=9, cpu_used=4)]
    now = reason(nodes, [], [Task("w", cpu=5, memory=1)])
    assert now == {
        "code": "cpu-per-node", "permanent": False, "proven": True, "resource": "cpu",
        "needed": 5.0, "available": 2.0, "where": "b", "task": "w",
    }  # fmt: skip
    never = reason(nodes, [], [Task("w", cpu=8, memory=1)])
    assert (never["permanent"], never["available"], never["where"]) == (True, 6.0, "b")


def test_the_sentence_takes_the_callers_units() -> None:
    nodes = [Node("n2", cpu=4000, memory=1), Node("n3", cpu=4000, memory=1, cpu_used=500)]
    result = solve(nodes, [], [Task("worker-0", cpu=8000)])
    assert result.reason is not None
    assert result.reason.missing == 4000
    text = result.reason.text(lambda resource, value: f"{value / 1000:g} cores" if resource == "cpu" else "")
    assert text == "task worker-0 needs 8 cores on one node; the largest node (n2) has 4 cores"


def test_no_allowed_node_and_no_single_node() -> None:
    assert reason(THREE, [], [Task("t", allowed=())])["code"] == "no-allowed-node"
    nodes = [Node("a", cpu=8, memory=1), Node("b", cpu=1, memory=8)]
    assert reason(nodes, [], [Task("t", cpu=4, memory=4)])["code"] == "no-node-fits"


def test_totals_and_packing() -> None:
    tasks = [Task(f"t{i}", cpu=3, memory=1) for i in range(5)]
    total = reason(THREE, [], tasks)
    assert (total["code"], total["needed"], total["available"]) == ("cpu-total", 15.0, 12.0)
    packing = reason(THREE, [], tasks[:4])
    assert (packing["code"], packing["proven"], packing["permanent"]) == ("packing", True, True)


def test_flows_without_a_path_or_with_too_narrow_a_path() -> None:
    nodes = [Node("a", cpu=1, memory=1), Node("b", cpu=1, memory=1)]
    tasks = [Task("t", cpu=1, memory=1), Task("u", cpu=1, memory=1)]
    assert reason(nodes, [], tasks, [Flow("t", "u", 1, 2)])["code"] == "unreachable"
    narrow = reason(nodes, wires("ab", bandwidth=50, bandwidth_used=20), tasks, [Flow("t", "u", 40, 60)])
    assert (narrow["code"], narrow["permanent"]) == ("bandwidth-per-flow", False)
    assert (narrow["needed"], narrow["available"], narrow["flow"]) == (40.0, 30.0, ("t", "u"))


def test_minimums_that_only_fit_one_by_one() -> None:
    nodes = [Node(name, cpu=1, memory=1) for name in "abc"]
    tasks = [Task(name, cpu=1, memory=1) for name in "tuv"]
    flows = [Flow("t", "u", 60, 60), Flow("t", "v", 60, 60), Flow("u", "v", 60, 60)]
    together = reason(nodes, wires("ab", "bc"), tasks, flows)
    assert (together["code"], together["proven"], together["permanent"]) == ("bandwidth-together", True, True)
    assert together["available"] < together["needed"] == 60.0


def test_flows_between_given_nodes_count() -> None:
    nodes = [Node("a", cpu=1, memory=1), Node("b", cpu=1, memory=1)]
    task = [Task("t", cpu=1, memory=1)]
    fixed = Flow("@a", "@b", 80, 90)
    assert solve(nodes, wires("ab"), task, [fixed]).feasible
    together = reason(
        nodes, wires("ab"), [Task("t", cpu=1, memory=1, allowed=("b",))], [fixed, Flow("@a", "t", 30, 40)]
    )
    assert together["code"] == "bandwidth-together"


def test_the_same_seed_gives_the_same_answer() -> None:
    for seed in range(3):
        problem = read_instance(random_instance("scarce", seed))
        answers = [get_solver().solve(problem, seed=7).to_dict() for _ in range(2)]
        assert answers[0] == answers[1]


def test_no_time_still_gives_an_answer() -> None:
    result = get_solver().solve(read_instance(random_instance("tight", 1)), time_limit_s=0.0)
    assert result.plan is not None or result.reason is not None


@pytest.mark.parametrize("seed", range(5))
def test_a_job_without_obstacles_has_a_place_however_little_time_there_is(seed: int) -> None:
    problem = read_instance(random_instance("thesis", seed, nodes=10, tasks=5))
    assert get_solver("greedy").solve(problem, time_limit_s=0.0).plan is not None


def test_solvers_go_by_name() -> None:
    assert set(SOLVERS) <= set(available())
    assert get_solver(DEFAULT) is SOLVERS["search-learned"]
    with pytest.raises(UnknownSolverError, match="greedy"):
        get_solver("magic")


@pytest.mark.parametrize("regime", ["thesis", "tight", "scarce"])
def test_nearly_every_random_instance_is_placed(regime: str) -> None:
    placed = 0
    for seed in range(25):
        problem = read_instance(random_instance(regime, seed))
        result = get_solver().solve(problem)
        assert check(write_instance(problem), result.to_dict()) == []
        placed += result.feasible
    assert placed >= 23
