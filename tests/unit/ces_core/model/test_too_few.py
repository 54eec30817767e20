"""Too few nodes with enough: what is told of them is so, and is a proof."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from core_instances import instances
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.model.instance import read_instance
from ces_core.model.parts import Node, Task
from ces_core.model.problem import RESOURCES, Cluster, Problem
from ces_core.model.reason import Reason, TooFewNodes
from ces_core.model.too_few import KINDS, NodeCount, nodes_for, too_few_nodes

few = st.integers(0, 4)


@st.composite
def problems(draw: st.DrawFn, alike: bool = False) -> Problem:
    """Small ones in whole numbers, so that every placement can be tried."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 4)))]
    amounts = [(draw(few), draw(few), draw(st.integers(0, 2))) for _ in names]
    used = [tuple(min(draw(few), most) for most in each) for each in amounts]
    cluster = Cluster.make(
        [
            Node(name, *have, cpu_used=took[0], memory_used=took[1], gpu_used=took[2])
            for name, have, took in zip(names, amounts, used, strict=True)
        ],
        [],
    )
    first = draw(st.tuples(few, few, st.integers(0, 1)))
    allowed = draw(st.none() | st.lists(st.sampled_from(names), unique=True).map(tuple))
    tasks = []
    for i in range(draw(st.integers(1, 4))):
        asked = first if alike else draw(st.tuples(few, few, st.integers(0, 1)))
        tasks.append(Task(f"t{i}", *asked, allowed=allowed if alike else draw(st.sampled_from([None, allowed]))))
    return Problem.make(cluster, tasks)


def fits(problem: Problem) -> bool:
    """Whether any placement at all fits."""
    free = problem.cluster.node_free
    nodes, tasks = range(free.shape[1]), range(len(problem.tasks))
    for places in itertools.product(nodes, repeat=len(problem.tasks)):
        taken = [[sum(problem.demand[t, r] for t in tasks if places[t] == n) for n in nodes] for r in range(3)]
        allowed = all(problem.allowed[t, places[t]] for t in tasks)
        if allowed and all(taken[r][n] <= free[r, n] for r in range(3) for n in nodes):
            return True
    return False


def check(problem: Problem, told: TooFewNodes) -> None:
    """That it says of the instance what anybody would count there."""
    rows = [RESOURCES.index(resource) for resource in told.each]
    amounts = list(told.each.values())
    asking = [t for t, demand in enumerate(problem.demand) if all(demand[rows] >= amounts)]
    assert told.needed == len(asking) >= 1
    assert any(demand[rows].tolist() == amounts for demand in problem.demand), "a task asks for just that"

    def places(amount_of: Any, most: int) -> list[int]:
        counted = []
        for n in range(len(problem.cluster.topology.nodes)):
            if problem.allowed[asking, n].any():
                has = [float(amount_of[row, n]) * (1 + 1e-9) for row in rows]
                counted.append(
                    sum(all(k * a <= h for a, h in zip(amounts, has, strict=True)) for k in range(1, most + 1))
                )
        return counted

    found = places(problem.cluster.node_free, told.needed)
    assert (told.available, told.nodes) == (sum(found), sum(each > 0 for each in found))
    assert told.available < told.needed
    assert told.apart == (told.needed == 1 or all(each < 2 for each in places(problem.cluster.node_capacity, 2)))


@settings(max_examples=400, deadline=None)
@given(problem=problems())
def test_what_is_told_is_so_and_there_is_no_place(problem: Problem) -> None:
    for resource in (None, 0, 1, 2):
        told = too_few_nodes(problem, resource)
        if told is not None:
            check(problem, told)
            assert resource is None or list(told.each) == [RESOURCES[resource]]
            assert not fits(problem)


@settings(max_examples=400, deadline=None)
@given(problem=problems(alike=True))
def test_where_tasks_are_alike_and_have_no_place_it_is_always_told(problem: Problem) -> None:
    told = too_few_nodes(problem)
    assert (told is None) == (fits(problem) or not problem.demand.any())


@settings(max_examples=200, deadline=None)
@given(problem=problems())
def test_nodes_for_one_tasks_amount_are_told_where_others_need_as_much(problem: Problem) -> None:
    for task, (row, resource) in itertools.product(range(len(problem.tasks)), enumerate(RESOURCES)):
        told = nodes_for(problem, task, row)
        if told is not None:
            check(problem, told)
            assert told.each == {resource: problem.demand[task, row]}
            assert told.needed > 1


@settings(max_examples=200, deadline=None)
@given(instance=instances())
def test_decimals_are_no_proof_by_rounding_alone(instance: dict[str, Any]) -> None:
    problem = read_instance(instance)
    told = too_few_nodes(problem)
    if told is not None:
        assert told.available < told.needed
        assert all(any(demand == amount for demand in problem.demand[:, RESOURCES.index(resource)])
                   for resource, amount in told.each.items())  # fmt: skip


def test_amounts_that_add_up_to_a_whole_fit() -> None:
    cluster = Cluster.make([Node("a", cpu=0.3)], [])
    assert too_few_nodes(Problem.make(cluster, [Task(f"t{i}", cpu=0.1) for i in range(3)])) is None


def test_the_simplest_explanation_is_told_and_of_those_the_most_that_is_left_over() -> None:
    cluster = Cluster.make([Node("a", cpu=4, memory=1), Node("b", cpu=1, memory=4), Node("c", cpu=4, memory=4)], [])
    both = too_few_nodes(Problem.make(cluster, [Task(f"t{i}", cpu=3, memory=3) for i in range(2)]))
    assert both == TooFewNodes({"cpu": 3.0, "memory": 3.0}, 2, 1, 1, True)
    cpu = too_few_nodes(Problem.make(cluster, [Task("s", cpu=4), *(Task(f"t{i}", cpu=2) for i in range(7))]))
    assert cpu == TooFewNodes({"cpu": 2.0}, 8, 4, 2, False)


def test_only_so_many_jobs_that_differ_are_counted_on_one_cluster() -> None:
    cluster = Cluster.make([Node("a", cpu=4)], [])
    count = NodeCount.of(cluster)
    jobs = [Problem.make(cluster, [Task("t", cpu=5 + i), Task("u", cpu=5 + i)]) for i in range(KINDS + 5)]
    assert [count.too_few(each) is not None for each in jobs] == [True] * KINDS + [False] * 5
    assert count.too_few(jobs[0]) is not None, "known already"
    assert count.for_task(jobs[1], 0, 0) is None
    assert too_few_nodes(jobs[-1]) is not None


CORES = TooFewNodes({"cpu": 0.9}, 4, 1, 1, True)


@pytest.mark.parametrize(
    ("nodes", "permanent", "said"),
    [
        (CORES, False, "4 nodes with 0.9 cpu free are needed, and 1 that it may use has that"),
        (CORES, True, "4 nodes with 0.9 cpu are needed, and 1 that it may use has that"),
        (
            TooFewNodes({"cpu": 2.0, "gpu": 1.0}, 3, 2, 2, True),
            False,
            "3 nodes with 2 cpu and 1 gpu free are needed, and 2 that it may use have that",
        ),
        (
            TooFewNodes({"cpu": 2.0, "gpu": 1.0}, 1, 0, 0, True),
            False,
            "1 node with 2 cpu and 1 gpu free is needed, and none that it may use has that",
        ),
        (
            TooFewNodes({"cpu": 1.0}, 4, 3, 2, False),
            False,
            "4 tasks need at least 1 cpu each on one node, and nodes that they may use have that free 3 times",
        ),
        (
            TooFewNodes({"cpu": 1.0}, 2, 1, 1, False),
            False,
            "2 tasks need at least 1 cpu each on one node, and nodes that they may use have that free once",
        ),
        (
            TooFewNodes({"cpu": 1.0}, 4, 3, 2, False),
            True,
            "4 tasks need at least 1 cpu each on one node, and nodes that they may use have that 3 times",
        ),
        (
            TooFewNodes({"cpu": 1.0}, 2, 0, 0, False),
            False,
            "2 tasks need at least 1 cpu each on one node, and none has that free",
        ),
    ],
)
def test_how_it_reads(nodes: TooFewNodes, permanent: bool, said: str) -> None:
    assert Reason("packing", permanent, nodes=nodes).text() == said
    assert Reason("cpu-total", permanent, True, "cpu", 4.0, 3.0, nodes=nodes).text() == said
    largest = "the largest node (n3) has 0.5 cpu" if permanent else "the largest free node (n3) has 0.5 cpu"
    alone = Reason("cpu-per-node", permanent, True, "cpu", 0.9, 0.5, "n3", "t", nodes=nodes)
    assert alone.text() == f"{said}; {largest}"


def test_a_reason_with_nodes_is_plain_data() -> None:
    assert Reason("packing", nodes=CORES).to_dict()["nodes"] == {
        "each": {"cpu": 0.9}, "needed": 4, "available": 1, "nodes": 1, "apart": True,
    }  # fmt: skip
