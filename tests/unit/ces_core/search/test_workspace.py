"""The compiled parts of the solver `search`: their invariants, and what they must not change."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from core_instances import instances, mild
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ces_core.bandwidth.composite import allocation_of
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.objective import evaluate
from ces_core.model.problem import Problem
from ces_core.model.topology import IntArray
from ces_core.placement.fill import exchange, fill
from ces_core.placement.path_choice import better_paths
from ces_core.placement.state import State
from ces_core.placement.trial import accept, attempt, install
from ces_core.placement.view import ProblemView, problem_view
from ces_core.search.annealing import keep
from ces_core.search.answer import refusals
from ces_core.search.solver import OPTIMISTIC, Bench
from ces_core.search.tree import PruningWeights
from ces_core.search.workspace import (
    improve_neighbourhoods,
    reset_tree,
    return_to_best,
    run_annealing,
    search_tree,
    worst_fit_start,
)

CERTAIN = PruningWeights(0.0, 0.0, 0.0, 0.0)
EXACT = 1e-9
"""Rounding apart, for sums of utilisations and shares; standard deviations near zero come out a root worse."""
odd = instances() | instances().map(mild)
kernels = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


def bench_of(problem: Problem, seed: int = 0) -> Bench:
    return Bench.of(problem_view(problem), seed)


def somewhere(view: ProblemView, seed: int) -> IntArray:
    """A random placement of every task on a node where it fits alone."""
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(np.flatnonzero(row)) for row in view.fits], dtype=np.int64)


def startable(instance: dict[str, Any], paths: int | None = None, basis: Any = "system") -> Problem:
    """The problem, provided that every task fits somewhere."""
    problem = read_instance(instance, paths=paths, basis=basis)
    assume(problem.homes.any(axis=1).all())
    return problem


def loads(view: ProblemView, path: IntArray, rates: Any) -> Any:
    """Load of the flows on every resource."""
    load = np.zeros(len(view.residual))
    for q, rate in zip(path.tolist(), rates, strict=True):
        if q >= 0:
            part = slice(view.path_first[q], view.path_first[q + 1])
            np.add.at(load, view.path_resource[part], view.path_times[part] * rate)
    return load


def is_in_step(problem: Problem, view: ProblemView, state: State) -> None:
    """Everything the state caches follows from placement, paths and rates."""
    demand = np.zeros((3, len(view.nodes)))
    np.add.at(demand.T, state.node_of, view.demand)
    scale = view.free + np.maximum(view.demand.sum(axis=0), 1e-12)[:, None]
    assert np.allclose(state.free / scale, (view.free - demand) / scale, rtol=0, atol=EXACT)
    use = view.use + demand[:2] * view.inverse
    assert np.allclose(state.use, use, rtol=EXACT, atol=EXACT)
    others = view.node_squares - (view.use**2 * (view.inverse > 0)).sum(axis=1)
    assert np.allclose(state.node_sums[:, 0], view.node_sum + (demand[:2] * view.inverse).sum(axis=1), rtol=EXACT)
    assert np.allclose(
        state.node_sums[:, 1], others + (use**2 * (view.inverse > 0)).sum(axis=1), rtol=EXACT, atol=EXACT
    )
    load, reserved = loads(view, state.path, state.rates), loads(view, state.path, view.low)
    room = view.residual + max(float(view.high.sum()), 1e-12)
    assert np.allclose(state.spare / room, (view.residual - load) / room, rtol=0, atol=EXACT)
    assert np.allclose(state.reserve / room, (view.residual - reserved) / room, rtol=0, atol=EXACT)
    link_use = view.link_use + load * view.link_inverse
    assert np.allclose(state.link_use, link_use, rtol=EXACT, atol=EXACT)
    counted = view.link_inverse > 0
    assert np.allclose(
        state.link_sums, [link_use[counted].sum(), (link_use[counted] ** 2).sum()], rtol=EXACT, atol=EXACT
    )
    if state.fits[0]:
        assert (state.free[:, state.node_of] >= 0).all()
        assert (state.path >= 0).all()
        assert (load <= view.residual + 1e-12 * view.residual).all()
        assert (state.rates >= view.low).all()
        assert (state.rates <= view.high).all()
        assignment = view.nodes[state.node_of].tolist()
        plan = allocation_of(problem, view, state)
        metrics = evaluate(problem, assignment, plan.paths, plan.bandwidth)
        assert state.score[0] == pytest.approx(metrics.composite, abs=1e-7)


@kernels
@given(
    instance=odd,
    paths=st.sampled_from([None, None, 3]),
    basis=st.sampled_from(["system", "job"]),
    seed=st.integers(0, 99),
)
def test_whatever_is_done_the_state_stays_in_step(
    instance: dict[str, Any], paths: int | None, basis: str, seed: int
) -> None:
    problem = startable(instance, paths, basis)
    bench = bench_of(problem, seed)
    view, work, state, workspace = bench.view, bench.work, bench.state, bench.workspace
    for again in range(2):
        install(view, work, state, somewhere(view, seed + again))
        is_in_step(problem, view, state)
    reset_tree(workspace)
    search_tree(workspace, OPTIMISTIC, len(view.fits), 40, 5)
    is_in_step(problem, view, state)
    before = float(state.score[0]) if state.fits[0] else -math.inf
    keep(state, bench.walk)
    run_annealing(workspace, 60, 0.1, 1e-3, 0, 60)
    is_in_step(problem, view, state)
    return_to_best(workspace)
    improve_neighbourhoods(workspace, OPTIMISTIC, min(3, len(view.fits)), 30, 5, 3, 60)
    is_in_step(problem, view, state)
    return_to_best(workspace)
    better_paths(view, work, state)
    is_in_step(problem, view, state)
    if before > -math.inf:
        assert state.fits[0]
        assert state.score[0] >= before


@kernels
@given(instance=odd, seed=st.integers(0, 99))
def test_a_trial_changes_nothing_and_says_what_accepting_it_gives(instance: dict[str, Any], seed: int) -> None:
    problem = startable(instance)
    bench = bench_of(problem)
    view, work, state = bench.view, bench.work, bench.state
    install(view, work, state, somewhere(view, seed))
    kept = {name: np.copy(getattr(state, name)) for name in ("node_of", "path", "rates", "score")}
    fitted = bool(state.fits[0])
    there = somewhere(view, seed + 100)
    changed = np.flatnonzero(there != state.node_of)[:2].astype(np.int64)
    trial = state.node_of.copy()
    trial[changed] = there[changed]
    score = attempt(view, work, state, trial, changed, len(changed), -math.inf, False)
    for name, value in kept.items():
        assert np.array_equal(getattr(state, name), value)
    assert bool(state.fits[0]) == fitted
    is_in_step(problem, view, state)
    fits = bool(state.fits[1])
    accept(view, state, trial, score)
    assert bool(state.fits[0]) == fits
    assert np.array_equal(state.node_of, trial)
    is_in_step(problem, view, state)


@kernels
@given(instance=odd, paths=st.sampled_from([None, 4]), seed=st.integers(0, 99))
def test_rates_keep_capacities_and_bounds(instance: dict[str, Any], paths: int | None, seed: int) -> None:
    problem = startable(instance, paths)
    bench = bench_of(problem)
    view, work = bench.view, bench.work
    rng = np.random.default_rng(seed)
    node = somewhere(view, seed)
    chosen = []
    for src, dst in zip(view.flow_src.tolist(), view.flow_dst.tolist(), strict=True):
        a, b = (int(node[end]) if end >= 0 else -1 - end for end in (src, dst))
        pair = a * len(view.nodes) + b
        first, last = int(view.pair_first[pair]), int(view.pair_first[pair + 1])
        assume(last > first)
        chosen.append(int(rng.integers(first, last)))
    path = np.array(chosen, dtype=np.int64)
    rates = np.zeros(len(path))
    shortage, value = fill(view, work, path, rates)
    least = loads(view, path, view.low)
    # What the minimums lack in rounding alone is nothing.
    if (least > view.residual * (1 + 1e-12)).any():
        assert shortage > 0
    if (least > view.residual).any() or shortage > 0:
        assert (least > view.residual * (1 - 1e-12)).any()
        return
    for better in (value, exchange(view, work, path, rates)):
        assert better >= value - 1e-12
        assert (rates >= view.low).all()
        assert (rates <= view.high).all()
        assert (loads(view, path, rates) <= view.residual * (1 + 1e-12)).all()


@kernels
@given(instance=odd, slice_=st.integers(1, 7))
def test_a_tree_search_with_certain_bounds_finds_the_best_placement(instance: dict[str, Any], slice_: int) -> None:
    """Every placement is installed and compared, where paths leave no choice: rates then depend on nothing else."""
    problem = startable(instance, paths=1)
    bench, every = bench_of(problem), bench_of(problem)
    view, work, state, tree = bench.view, bench.work, bench.state, bench.tree
    placements = [np.flatnonzero(row).tolist() for row in view.fits]
    assume(math.prod(len(nodes) for nodes in placements) <= 400)
    best = -math.inf
    for placement in itertools.product(*placements):
        install(view, every.work, every.state, np.array(placement, dtype=np.int64))
        if every.state.fits[0]:
            best = max(best, float(every.state.score[0]))
    install(view, work, state, somewhere(view, 0))
    reset_tree(bench.workspace)
    tasks = len(view.fits)
    for _ in range(3000):  # a slice at a time: that must not make a difference
        search_tree(bench.workspace, CERTAIN, tasks, slice_, len(view.nodes))
        if tree.level[0] < 0:
            break
    assert tree.level[0] < 0
    assert bool(state.fits[0]) == (best > -math.inf)
    if state.fits[0]:
        assert state.score[0] == pytest.approx(best, abs=1e-6)


def test_from_a_placement_that_does_not_fit_the_tree_search_knows_no_rates_and_prunes_by_none() -> None:
    """The flow between two nodes, of which no task is an end, has no rate yet when the search begins."""
    names = ("n0", "n1", "n2")
    instance = {
        "nodes": [{"name": name, "cpu": 6.0, "memory": 6.0, "gpu": 2 if name == "n0" else 1} for name in names],
        "links": [
            {"src": a, "dst": b, "bandwidth": 72.0 if (a, b) == ("n0", "n2") else 0.0}
            for a, b in itertools.permutations(names, 2)
        ],
        "job": {
            "name": "j",
            "tasks": [
                {"name": "t0", "cpu": 0.25, "memory": 0.0, "gpu": 1},
                {"name": "t1", "cpu": 0.5, "memory": 0.0, "gpu": 1},
            ],
            "flows": [
                {"src": "t0", "dst": "t1", "min": 0.1, "max": 75.0},
                {"src": "t0", "dst": "@n0", "min": 0.0, "max": 0.0},
                {"src": "t0", "dst": "@n1", "min": 0.0, "max": 0.0},
                {"src": "t1", "dst": "t0", "min": 0.0, "max": 0.0},
                {"src": "@n0", "dst": "@n2", "min": 0.0, "max": 1.0},
            ],
        },
        "weights": [1 / 3] * 3,
    }
    bench = bench_of(read_instance(instance, paths=1))
    install(bench.view, bench.work, bench.state, np.array([0, 1]))
    assert not bench.state.fits[0]
    reset_tree(bench.workspace)
    search_tree(bench.workspace, CERTAIN, 2, 100, 3)
    assert bench.state.node_of.tolist() == [0, 0]


@kernels
@given(instance=odd, seed=st.integers(0, 99))
def test_refusals_say_what_keeps_a_task_from_moving(instance: dict[str, Any], seed: int) -> None:
    problem = startable(instance)
    bench = bench_of(problem)
    view, state = bench.view, bench.state
    install(view, bench.work, state, somewhere(view, seed))
    assume(state.fits[0])
    codes = np.full(view.fits.shape, -1, dtype=np.int8)
    refusals(view, state, codes)
    for t, n in itertools.product(range(len(view.fits)), range(len(view.nodes))):
        assert codes[t, n] == expected_refusal(view, state, t, n)
    is_in_step(problem, view, state)


def expected_refusal(view: ProblemView, state: State, t: int, n: int) -> int:
    """Computed from scratch: 1 to 3 for the first scarce resource, 4 for a flow that does not fit."""
    if n == state.node_of[t]:
        return 0
    others = np.arange(len(view.fits)) != t
    left = view.free[:, n] - view.demand[others & (state.node_of == n)].sum(axis=0)
    short = np.flatnonzero(view.demand[t] > left)
    if len(short):
        return int(short[0]) + 1
    mine = [t in (src, dst) for src, dst in zip(view.flow_src, view.flow_dst, strict=True)]
    room = view.residual - loads(view, state.path, np.where(mine, 0.0, view.low))
    for f in np.flatnonzero(mine):
        a, b = (
            n if end == t else int(state.node_of[end]) if end >= 0 else -1 - int(end)
            for end in (view.flow_src[f], view.flow_dst[f])
        )
        pair = a * len(view.nodes) + b
        parts = [
            slice(view.path_first[q], view.path_first[q + 1])
            for q in range(view.pair_first[pair], view.pair_first[pair + 1])
        ]
        widths = [(room[view.path_resource[p]] / view.path_times[p]).min(initial=np.inf) for p in parts]
        if not any(width >= view.low[f] for width in widths):
            return 4
    return 0


@pytest.mark.parametrize("wrong", [[0, 99], [-1, 0], [1, 0], [0, 0]])
def test_candidates_that_are_no_nodes_or_in_no_order_are_refused(wrong: list[int]) -> None:
    with pytest.raises(ValueError, match="candidates must be"):
        problem_view(read_instance(random_instance("thesis", 1)), np.array(wrong))


def test_a_search_has_nowhere_to_begin_without_candidates() -> None:
    view = problem_view(read_instance(random_instance("thesis", 1)), np.zeros(0, dtype=np.int64))
    with pytest.raises(ValueError, match="no candidate"):
        worst_fit_start(Bench.of(view, 0).workspace)
