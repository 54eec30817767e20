"""The least time of a chain, against every choice of nodes and paths."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from goal_instances import goal_instance, pipeline

from ces_core.model.instance import read_instance
from ces_core.model.problem import Problem
from ces_core.model.service import Service
from ces_core.network.cache import paths_for
from ces_core.network.path_table import PathTable
from ces_core.search.goals.domains import narrowed
from ces_core.search.goals.least_time import LeastTime


def by_trying(problem: Problem, service: Service, c: int) -> float:
    """Every choice of nodes, and of the fastest path and rate for each flow alone."""
    homes, chain = narrowed(problem).homes, service.goals.chains[c]
    free = problem.cluster.bandwidth_free
    best = math.inf
    for nodes in itertools.product(*(np.flatnonzero(row).tolist() for row in homes)):
        total = chain.fixed_ms + sum(float(service.response_ms[t, nodes[t]]) for t in service.chain_tasks[c])
        for f in service.chain_flows[c]:
            flow = problem.flows[f]
            src, dst = problem.flow_ends(nodes)[f]
            sources = [problem.cluster.topology.node_index[name] for name in flow.sources or ()] or [src]
            times = [math.inf]
            for source in sources:
                for path in paths_for(problem).between(source, dst):
                    width = min((free[r] / times for r, times in path.loads), default=math.inf)
                    if width >= flow.min:
                        times.append(service.flow_ms(f, path, min(flow.max, width)))
            total += min(times)
        best = min(best, total)
    return best


@pytest.mark.parametrize("seed", range(20))
def test_no_choice_is_faster(seed: int) -> None:
    problem = read_instance(goal_instance(seed, nodes=3))
    service = Service(problem)
    least = LeastTime(problem, service, narrowed(problem).homes)
    for c in range(len(service.goals.chains)):
        found = least.of(c)
        assert found is not None
        assert found[0] == pytest.approx(by_trying(problem, service, c))
        if narrowed(problem).homes.any(axis=1).all():
            assert sum(step.ms for step in found[1]) == pytest.approx(found[0])


def test_a_task_that_is_passed_twice_is_in_one_place() -> None:
    """There and back: its time counts twice."""
    loop: dict[str, Any] = {"name": "loop", "tasks": ["t0", "t1", "t0"], "flows": [["t0", "t1"]], "deadline_ms": 500}
    problem = read_instance(pipeline(chains=[loop]))
    service = Service(problem)
    found = LeastTime(problem, service, narrowed(problem).homes).of(0)
    assert found is not None
    assert found[0] == pytest.approx(19 + 20 + 19 + 22)


def test_a_refusal_among_a_hundred_nodes_makes_no_path_of_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their ten thousand pairs took seconds."""
    monkeypatch.setattr(PathTable, "between", lambda *_: pytest.fail("a pair's paths were made"))
    ring = [(f"n{i}", f"n{(i + 1) % 100}") for i in range(100)]
    nodes = [{"name": name, "cpu": 4, "memory": 4} for name, _ in ring]
    links = [
        {"src": a, "dst": b, "bandwidth": 100, "delay_ms": 2} for src, dst in ring for a, b in ((src, dst), (dst, src))
    ]
    tasks = [{"name": f"t{i}", "cpu": 1, "memory": 1, "work": {"per_request": 10}} for i in range(2)]
    flows = [{"src": "@n0", "dst": "t0", "min": 1, "max": 10}, {"src": "t0", "dst": "t1", "min": 1, "max": 10}]
    chain = {"name": "loop", "tasks": ["t0", "t1"], "flows": [["@n0", "t0"], ["t0", "t1"]], "deadline_ms": 15}
    job = {"tasks": tasks, "flows": flows, "chains": [chain | {"hard": True}]}
    problem = read_instance({"nodes": nodes, "links": links, "job": job})
    found = LeastTime(problem, Service(problem), narrowed(problem).homes).of(0)
    assert found is not None
    assert found[0] == pytest.approx(20)


def test_what_would_need_too_large_tables_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ces_core.search.goals.least_time.LARGEST", 1)
    problem = read_instance(pipeline())
    problem_homes = np.ones_like(narrowed(problem).homes)
    assert LeastTime(problem, Service(problem), problem_homes).of(0) is None
