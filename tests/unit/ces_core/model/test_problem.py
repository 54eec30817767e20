"""What makes a problem, and what is refused with the field's name."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from changed_items import set_item

from ces_core.model.errors import ProblemError
from ces_core.model.instance import read_instance, write_instance
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.network.cache import paths_for, paths_of

INSTANCE: dict[str, Any] = {
    "nodes": [{"name": "a", "cpu": 8, "memory": 8, "cpu_used": 2}, {"name": "b", "cpu": 4, "memory": 4}],
    "links": [{"src": "a", "dst": "b", "bandwidth": 100, "medium": "air"}],
    "media": {"air": 150},
    "job": {
        "name": "j",
        "tasks": [{"name": "t0", "cpu": 1, "memory": 1}, {"name": "t1", "cpu": 1, "memory": 1}],
        "flows": [{"src": "t0", "dst": "t1", "min": 1, "max": 2}, {"src": "@a", "dst": "t1", "min": 0, "max": 1}],
    },
}


def test_an_instance_is_read_and_written_back() -> None:
    problem = read_instance(INSTANCE)
    assert problem.demand.tolist() == [[1, 1, 0], [1, 1, 0]]
    assert problem.cluster.node_free.tolist() == [[6, 4], [8, 4], [0, 0]]
    assert problem.flow_src.tolist() == [0, -1]
    assert problem.flow_ends([0, 1]) == [(0, 1), (0, 1)]
    assert problem.cluster.bandwidth_free.tolist() == [100, 150]
    again = read_instance(write_instance(problem))
    assert write_instance(again) == write_instance(problem)


def test_arrays_cannot_be_changed() -> None:
    problem = read_instance(INSTANCE)
    for array in (problem.demand, problem.cluster.node_used, problem.cluster.topology.link_src):
        with pytest.raises(ValueError):
            array[0] = 1


def test_the_same_structure_shares_one_topology() -> None:
    busier = copy.deepcopy(INSTANCE)
    busier["nodes"][0]["cpu_used"] = 5
    one, other = read_instance(INSTANCE), read_instance(busier)
    assert one.cluster.topology is other.cluster.topology
    assert paths_of(one.cluster.topology) is paths_of(other.cluster.topology)


def test_use_above_capacity_leaves_nothing_free() -> None:
    cluster = Cluster.make([Node("a", cpu=4, cpu_used=6), Node("b", cpu=1)], [Link("a", "b", 10, 20)])
    assert cluster.node_free[0].tolist() == [0, 1]
    assert cluster.bandwidth_free.tolist() == [0]
    assert cluster.emptied().node_free[0].tolist() == [4, 1]


def test_a_switch_is_never_allowed() -> None:
    cluster = Cluster.make([Node("switch"), Node("a", cpu=1)], [])
    assert Problem.make(cluster, [Task("t")]).allowed.tolist() == [[False, True]]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (set_item("links", 0, "dst", "zz"), "links[0].dst"),
        (set_item("links", 0, "dst", "a"), "links[0].dst"),
        (set_item("links", 0, "bandwidth", -1), "links[0].bandwidth"),
        (set_item("links", 0, "bandwidth", float("nan")), "links[0].bandwidth"),
        (set_item("links", 0, "medium", "water"), "links[0].medium"),
        (set_item("links", 0, "bandwidth", 1e-300), "links[0].bandwidth"),
        (set_item("links", 0, {}), "links[0].src"),
        (set_item("links", [{"src": "a", "dst": "b", "bandwidth": 1}] * 2), "links[1]"),
        (set_item("media", {"air": float("inf")}), "media.air"),
        (set_item("media", "air", -3), "media.air"),
        (set_item("nodes", []), "nodes"),
        (set_item("nodes", 1, "name", "a"), "nodes[1].name"),
        (set_item("nodes", 1, "cpu", "4"), "nodes[1].cpu"),
        (set_item("nodes", 1, "cpu", True), "nodes[1].cpu"),
        (set_item("nodes", 1, "cpu_usd", 1), "nodes[1].cpu_usd"),
        (set_item("nodes", 1, "memory_used", -1), "nodes[1].memory_used"),
        (set_item("job", "tasks", []), "job.tasks"),
        (set_item("job", "tasks", 1, "name", "t0"), "job.tasks[1].name"),
        (set_item("job", "tasks", 1, "name", "@a"), "job.tasks[1].name"),
        (set_item("job", "tasks", 1, "gpu", -1), "job.tasks[1].gpu"),
        (set_item("job", "tasks", 1, "allowed", ["a", "q"]), "job.tasks[1].allowed[1]"),
        (set_item("job", "flows", 0, "min", 3), "job.flows[0].min"),
        (set_item("job", "flows", 0, "src", "t9"), "job.flows[0].src"),
        (set_item("job", "flows", 1, "src", "@zz"), "job.flows[1].src"),
        (set_item("job", "flows", 0, "dst", "t0"), "job.flows[0].dst"),
        (set_item("job", "flows", 1, "src", "t0"), "job.flows[1]"),
        (set_item("weights", [0.5, 0.5]), "weights"),
        (set_item("weights", [0.5, -0.5, 1]), "weights[1]"),
        (set_item("job", None), "job"),
    ],
)
def test_nonsense_is_refused_with_its_field(change: Callable[[dict[str, Any]], None], field: str) -> None:
    data = copy.deepcopy(INSTANCE)
    change(data)
    with pytest.raises(ProblemError) as caught:
        read_instance(data)
    assert caught.value.field == field


def test_parts_made_by_programs_are_checked_too() -> None:
    cluster = Cluster.make([Node("a", cpu=1)], [])
    with pytest.raises(ProblemError, match=r"job.tasks\[0\].cpu: must be finite"):
        Problem.make(cluster, [Task("t", cpu=float("nan"))])
    with pytest.raises(ProblemError, match=r"job.flows\[0\].max"):
        Problem.make(cluster, [Task("t"), Task("u")], [Flow("t", "u", 0, -1)])
    with pytest.raises(ProblemError, match="basis"):
        Problem.make(cluster, [Task("t")], basis="other")
    for paths in (0, -1, True, 2.5):
        with pytest.raises(ProblemError, match="paths: must be a whole number from 1 on"):
            Problem.make(cluster, [Task("t")], paths=paths)
    assert Problem.make(cluster, [Task("t", cpu=np.float64(1))]).demand[0, 0] == 1


def test_a_problem_chooses_its_paths() -> None:
    cluster = Cluster.make([Node("a", cpu=1), Node("b")], [Link("a", "b", 1)])
    plain, wide = Problem.make(cluster, [Task("t")]), Problem.make(cluster, [Task("t")], paths=3)
    assert (plain.path_set, wide.path_set) == ("hop-shortest", "3-shortest")
    assert paths_for(plain) is paths_of(cluster.topology)
    assert paths_for(wide.on_empty_cluster()) is paths_for(wide) is paths_of(cluster.topology, 3)


def test_what_is_used_changes_and_the_rest_is_shared() -> None:
    cluster = Cluster.make([Node("a", cpu=2), Node("b", cpu=2)], [Link("a", "b", 5, 1)])
    busier = cluster.with_used(cluster.node_used + 1, cluster.link_used + 3)
    assert busier.topology is cluster.topology
    assert busier.node_free[0].tolist() == [1, 1]
    assert (busier.bandwidth_free.tolist(), cluster.bandwidth_free.tolist()) == ([1], [4])
