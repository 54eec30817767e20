"""The solver `search` as a whole: near the best, honest about limits, the same by seed, in threads, without numba."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from core_instances import instances, mild
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ces_core.bandwidth.bounds import composite_limit
from ces_core.bandwidth.composite import complete
from ces_core.checker import check
from ces_core.learned.start.regions import rule_of
from ces_core.learned.start.weights import shipped
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.model.objective import evaluate
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.placement.candidates import ALL, BY_HAND, Rule, candidates
from ces_core.search.greedy import GREEDY
from ces_core.search.solver import SEARCH, Search

odd = instances() | instances().map(mild)
some = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


def grid(side: int, special: dict[tuple[int, int], dict[str, Any]] | None = None) -> Cluster:
    """A square of equal nodes, some of them ``special``, each wired to its neighbours both ways."""
    spots = list(itertools.product(range(side), range(side)))
    nodes = [
        Node(**({"name": f"n{x}-{y}", "cpu": 4.0, "memory": 4.0} | (special or {}).get((x, y), {}))) for x, y in spots
    ]
    wires = [((x, y), (x + i, y + j)) for x, y in spots for i, j in ((0, 1), (1, 0)) if x + i < side and y + j < side]
    both = [pair for a, b in wires for pair in ((a, b), (b, a))]
    return Cluster.make(nodes, [Link(f"n{a[0]}-{a[1]}", f"n{b[0]}-{b[1]}", 100.0) for a, b in both])


def ring(tasks: int, low: float, high: float) -> list[Flow]:
    return [Flow(f"t{i}", f"t{(i + 1) % tasks}", low, high) for i in range(tasks)]


def best_by_force(problem: Problem) -> float:
    """The best composite over all placements; -inf where no placement is a plan."""
    best = -math.inf
    for placement in itertools.product(*(np.flatnonzero(row).tolist() for row in problem.homes)):
        load = np.zeros_like(problem.cluster.node_free)
        np.add.at(load.T, list(placement), problem.demand)
        if (load > problem.cluster.node_free + 1e-13 * problem.cluster.node_capacity).any():
            continue
        found = complete(problem, placement)
        if found is not None:
            best = max(best, evaluate(problem, placement, found.paths, found.bandwidth).composite)
    return best


@some
@given(instance=odd, basis=st.sampled_from(["system", "job"]), seed=st.integers(0, 3))
def test_no_placement_of_a_small_job_is_better(instance: dict[str, Any], basis: Any, seed: int) -> None:
    problem = read_instance(instance, basis=basis)
    assume(math.prod(max(int(row.sum()), 1) for row in problem.homes) <= 200)
    best, result = best_by_force(problem), SEARCH.solve(problem, seed=seed)
    assert result.feasible == (best > -math.inf)
    if result.metrics is not None:
        assert result.metrics.composite >= best - 1e-6
        assert result.bound is None or result.bound >= best - 1e-9


# Fixed instances, and a bounded search without a clock: the figures are the same on every machine.
@pytest.mark.parametrize(("regime", "most"), [("thesis", 0.0002), ("tight", 0.001), ("scarce", 0.003)])
def test_a_short_search_is_near_a_long_one(regime: str, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [read_instance(random_instance(regime, seed)) for seed in range(12)]
    short = [SEARCH.solve(problem) for problem in problems]
    monkeypatch.setattr("ces_core.search.effort.BUDGET", 200_000)
    long = [SEARCH.solve(problem, seed=1) for problem in problems]
    assert [result.feasible for result in short] == [result.feasible for result in long]
    gaps = [
        there.metrics.composite - here.metrics.composite
        for here, there in zip(short, long, strict=True)
        if here.metrics is not None and there.metrics is not None
    ]
    assert len(gaps) > 6
    assert np.mean(gaps) <= most


@some
@given(instance=odd, basis=st.sampled_from(["system", "job"]), seed=st.integers(0, 99))
def test_the_limit_on_the_composite_is_above_every_plan(instance: dict[str, Any], basis: Any, seed: int) -> None:
    problem = read_instance(instance, basis=basis)
    assume(problem.homes.any(axis=1).all())
    rng = np.random.default_rng(seed)
    plans = [[int(rng.choice(np.flatnonzero(row))) for row in problem.homes] for _ in range(6)]
    limits = [composite_limit(problem, plan) for plan in plans]
    for plan in plans:
        found = complete(problem, plan)
        if found is not None:
            reached = evaluate(problem, plan, found.paths, found.bandwidth).composite
            assert min(limits) >= reached - 1e-9


def test_equal_use_but_for_rounding_makes_no_limit() -> None:
    nodes = [Node("a", memory=25.0, memory_used=17.5), Node("b", memory=15.0, memory_used=10.5)]
    assert composite_limit(Problem.make(Cluster.make(nodes, []), [Task("t")]), [0]) == pytest.approx(1.0)


def test_a_task_starts_on_nodes_that_it_may_use() -> None:
    # Neither node has CPU, so no amount of CPU tells them apart; the other one would balance memory better.
    cluster = Cluster.make([Node("a", memory=8.0), Node("b", memory=8.0, memory_used=4.0)], [])
    result = SEARCH.solve(Problem.make(cluster, [Task("t", memory=2.0, allowed=("b",))]))
    assert result.plan is not None
    assert result.plan.assignments == {"t": "b"}


def test_nothing_is_put_on_links_in_use_beyond_their_capacity() -> None:
    cluster = Cluster.make([Node("a", cpu=1.0), Node("b")], [Link("a", "b", 1.0, bandwidth_used=1.5)])
    result = SEARCH.solve(Problem.make(cluster, [Task("t")], [Flow("t", "@b", 0.0, 1.0)]))
    assert result.plan is not None
    assert result.plan.flows[0].bandwidth == 0.0


def test_a_node_that_lacks_a_byte_holds_no_task() -> None:
    much = 64 * 2**30
    nodes = [Node("a", cpu=9.0, memory=3 * much - 1), Node("b", cpu=9.0, memory=much)]
    problem = Problem.make(Cluster.make(nodes, []), [Task(f"t{i}", cpu=1.0, memory=much) for i in range(3)])
    result = SEARCH.solve(problem)
    assert result.plan is not None
    assert sorted(result.plan.assignments.values()) == ["a", "a", "b"]


@pytest.mark.parametrize("limit", [0.0, 1e-3, math.inf, None])
@pytest.mark.parametrize("tasks", [1, 2, 12])
def test_any_time_limit_gives_a_plan(limit: float | None, tasks: int) -> None:
    instance = random_instance("thesis", 5, tasks=tasks)
    result = SEARCH.solve(read_instance(instance), time_limit_s=limit)
    assert result.feasible
    assert check(instance, result.to_dict()) == []


def test_threads_do_not_disturb_each_other() -> None:
    problems = [read_instance(random_instance(regime, seed)) for regime in REGIMES for seed in range(4)]
    alone = [SEARCH.solve(problem, seed=3).to_dict() for problem in problems]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda problem: SEARCH.solve(problem, seed=3).to_dict(), problems * 2))
    assert together == alone * 2


WITHOUT_NUMBA = """
import json, sys
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.compiled.jit import COMPILED
from ces_core.search.solver import SEARCH
assert not COMPILED
for regime, seed in (("thesis", 0), ("tight", 1), ("scarce", 2), ("scarce", 6)):
    result = SEARCH.solve(read_instance(random_instance(regime, seed, tasks=4)))
    print(json.dumps([regime, seed, result.to_dict()]))
"""


def test_without_numba_the_same_code_decides() -> None:
    environment = os.environ | {"CES_NO_NUMBA": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(lines) == 4
    for regime, seed, answer in lines:
        instance = random_instance(regime, seed, tasks=4)
        here = SEARCH.solve(read_instance(instance))
        assert check(instance, answer) == []
        assert answer["feasible"] == here.feasible
        if here.metrics is not None:  # it looks at a twentieth
            assert answer["metrics"]["composite"] >= here.metrics.composite - 0.03


@pytest.mark.parametrize("tasks", [3, 12])
def test_few_far_nodes_that_tasks_need_are_candidates(tasks: int) -> None:
    spots = [(x, y) for x in (1, 5, 10, 14) for y in (2, 8, 13)]
    cluster = grid(15, {spot: {"gpu": 1.0} for spot in spots})
    problem = Problem.make(cluster, [Task(f"t{i}", cpu=3.0, gpu=1.0) for i in range(tasks)], ring(tasks, 0.5, 10))
    result = SEARCH.solve(problem, time_limit_s=0.0)
    assert result.plan is not None
    assert len(set(result.plan.assignments.values())) == tasks


def test_a_job_finds_more_nodes_than_a_region_has() -> None:
    problem = Problem.make(grid(15), [Task(f"t{i}", cpu=4.0) for i in range(150)])
    assert problem.homes.shape[1] > ALL
    assert len(candidates(problem)) >= 150
    assert SEARCH.solve(problem, time_limit_s=0.0).feasible


def test_tasks_bound_to_opposite_corners_have_a_place() -> None:
    far = {"t0": ("n0-0",), "t1": ("n14-14",), "t2": ("n0-14", "n14-0")}
    tasks = [Task(f"t{i}", cpu=4.0, allowed=far.get(f"t{i}")) for i in range(6)]
    flows = [*ring(6, 1.0, 20.0), Flow("@n7-0", "t3", 1.0, 20.0)]
    result = SEARCH.solve(Problem.make(grid(15), tasks, flows), time_limit_s=0.0)
    assert result.plan is not None


@pytest.mark.parametrize("rule", [BY_HAND, rule_of(shipped())], ids=["by hand", "learned"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), tasks=st.integers(1, 12))
def test_candidates_keep_every_task_placeable(rule: Rule, seed: int, tasks: int) -> None:
    rng = np.random.default_rng(seed)
    cluster = grid(11, {(int(x), int(y)): {"cpu": 40.0} for x, y in rng.integers(0, 11, (5, 2))})
    names = list(cluster.topology.nodes)

    def task(i: int) -> Task:
        own = tuple(rng.choice(names, 3).tolist()) if rng.random() < 0.3 else None
        return Task(f"t{i}", cpu=float(rng.choice([1.0, 3.0, 4.0, 20.0])), allowed=own)

    problem = Problem.make(cluster, [task(i) for i in range(tasks)], ring(tasks, 0.1, 30) if tasks > 1 else [])
    chosen = candidates(problem, seed, rule)
    assert len(problem.cluster.topology.nodes) > ALL
    assert (np.diff(chosen) > 0).all()
    fitting = problem.homes.sum(axis=1)
    here = problem.homes[:, chosen].sum(axis=1)
    # Those with few places keep enough that those with fewer cannot take them all.
    for before, t in enumerate(np.argsort(fitting, kind="stable")):
        assert here[t] >= min(before + 1, fitting[t])
    if GREEDY.solve(problem).feasible:
        assert Search(rule=rule).solve(problem, time_limit_s=0.0).feasible


@pytest.mark.parametrize("unit", [1e-6, 1.0, 8e6])
def test_units_far_from_one_are_no_matter(unit: float) -> None:
    instance = random_instance("tight", 3)
    for item in (*instance["links"], *instance["job"]["flows"]):
        item |= {key: item[key] * unit for key in ("bandwidth", "min", "max") if key in item}
    result = SEARCH.solve(read_instance(instance))
    assert check(instance, result.to_dict()) == []
    usual = SEARCH.solve(read_instance(random_instance("tight", 3)))
    assert result.metrics is not None
    assert usual.metrics is not None
    assert result.metrics.composite == pytest.approx(usual.metrics.composite, abs=1e-3)
