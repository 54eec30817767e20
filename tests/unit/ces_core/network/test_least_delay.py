"""The K paths with the least delay, against every simple path."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.checker import check
from ces_core.model.errors import ProblemError
from ces_core.model.instance import read_instance
from ces_core.network.cache import paths_for
from ces_core.registry import get_solver


def _detour(k: int | None = 1, delay: float = 9.0) -> Any:
    """From a straight to c, or over b in less time."""
    links = [("a", "c", delay), ("a", "b", 2.0), ("b", "c", 3.0)]
    instance = {
        "nodes": [{"name": name, "cpu": 1, "memory": 1} for name in "abc"],
        "links": [{"src": a, "dst": b, "bandwidth": 10, "delay_ms": ms} for a, b, ms in links],
        "job": {
            "tasks": [{"name": "t", "cpu": 1, "allowed": ["b"]}],
            "flows": [{"src": "@a", "dst": "@c", "min": 1, "max": 1}],
        },
    }
    return instance, read_instance(instance, paths=k, path_metric="delay")


def test_the_fastest_path_is_taken_though_another_is_shorter() -> None:
    instance, problem = _detour()
    assert problem.path_set == "1-least-delay"
    answer = get_solver("greedy").solve(problem).to_dict(paths=problem.path_set)
    assert answer["flows"][0]["path"] == ["a", "b", "c"]
    assert check(instance, answer, paths=1, path_metric="delay") == []
    assert {found.code for found in check(instance, answer, paths=1)} >= {"path-set"}
    straight = answer | {"flows": [answer["flows"][0] | {"path": ["a", "c"]}]}
    assert [found.code for found in check(instance, straight, paths=1, path_metric="delay")] == ["path-length"]


def test_new_delays_give_new_paths_on_the_same_topology() -> None:
    _, slow = _detour(delay=9.0)
    _, fast = _detour(delay=1.0)
    assert slow.cluster.topology is fast.cluster.topology
    ways = [[path.nodes for path in paths_for(problem).between(0, 2)] for problem in (slow, fast, slow)]
    assert ways == [[(0, 1, 2)], [(0, 2)], [(0, 1, 2)]]
    assert paths_for(slow) is paths_for(slow)


def test_it_must_be_said_how_many() -> None:
    with pytest.raises(ProblemError, match="paths: say how many"):
        _detour(None)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1_000_000), k=st.integers(1, 5))
def test_the_paths_are_the_least_of_all_simple_ones(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(int(rng.integers(2, 6)))]
    links = [
        {"src": a, "dst": b, "bandwidth": 10, "medium": "air", "delay_ms": float(rng.integers(0, 4))}
        for a, b in itertools.permutations(names, 2)
        if rng.random() < 0.6
    ]
    nodes = [{"name": name, "cpu": 1} for name in names]
    instance = {"nodes": nodes, "links": links, "media": {"air": 9}, "job": {"tasks": [{"name": "t"}]}}
    problem = read_instance(instance, paths=k, path_metric="delay")
    graph = nx.DiGraph([(link["src"], link["dst"], {"ms": link["delay_ms"]}) for link in links])
    graph.add_nodes_from(names)
    index = problem.cluster.topology.node_index
    for a, b in itertools.permutations(names, 2):
        found = paths_for(problem).between(index[a], index[b])
        every = sorted(nx.path_weight(graph, path, "ms") for path in nx.all_simple_paths(graph, a, b))
        ms = [sum(links[i]["delay_ms"] for i in path.links) for path in found]
        assert ms == every[:k]
        assert len({path.nodes for path in found}) == len(found)
        for path in found:
            assert (path.nodes[0], path.nodes[-1]) == (index[a], index[b])
            assert dict(path.loads)[len(links)] == len(path.links), "the medium carries every hop"
