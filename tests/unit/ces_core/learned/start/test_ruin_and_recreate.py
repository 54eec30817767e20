"""Placing a few tasks at a time anew: what it keeps in step, that it gains, and where it is left out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from core_instances import instances, mild
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ces_core.checker import check
from ces_core.learned.start.nearness import NOWHERE, hops_of
from ces_core.learned.start.ruin_and_recreate import MOST, ruin_and_recreate
from ces_core.learned.start.solver import SEARCH_LEARNED
from ces_core.learned.start.weights import HABITS, shipped
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.placement.value import shipped as value
from ces_core.placement.view import problem_view
from ces_core.search.answer import planned
from ces_core.search.solver import SEARCH, Bench, with_start_plan
from ces_core.search.workspace import return_to_best

odd = instances() | instances().map(mild)
some = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
PLACED = 60


def like(**changed: float) -> Any:
    """The shipped habits with some changed."""
    habits = shipped().remake.copy()
    for name, worth in changed.items():
        habits[HABITS.index(name)] = worth
    return habits


def rows(bench: Bench) -> list[list[float]]:
    """What follows from placement, paths and rates."""
    state = bench.state
    sums = (state.free, state.use, state.node_sums, state.spare, state.reserve, state.link_use, state.link_sums)
    return [each.ravel().tolist() for each in sums]


@some
@given(
    instance=odd,
    seed=st.integers(0, 5),
    heat=st.sampled_from([0.0, 0.3, 50.0]),
    more=st.sampled_from([0.0, 0.6, 1.0]),
    back=st.sampled_from([0.0, 1.0]),
    worth=st.booleans(),
    near=st.booleans(),
)
def test_what_it_comes_to_breaks_no_rule_and_is_worth_what_it_says(
    instance: dict[str, Any], seed: int, heat: float, more: float, back: float, worth: bool, near: bool
) -> None:
    problem = read_instance(instance)
    assume(problem.homes.any(axis=1).all())
    view = problem_view(problem)
    if worth:
        view = value().on(problem, view)
    bench = with_start_plan(view)
    assume(bench.state.fits[0])
    bench.walk.random[0] += seed
    first = float(bench.state.score[0])
    seen = ruin_and_recreate(
        bench.workspace, like(heat=heat, more=more, open=back), hops_of(view) if near else NOWHERE, PLACED
    )
    assert PLACED <= seen < PLACED + MOST
    assert bench.state.fits[0]
    assert bench.walk.best_score[0] >= max(first, bench.state.score[0])
    return_to_best(bench.workspace)
    result = planned("remade", problem, view, bench.state)
    assert check(instance, result.to_dict(paths=problem.path_set)) == []
    if not worth:
        assert result.metrics is not None
        assert result.metrics.composite == pytest.approx(float(bench.walk.best_score[0]), abs=1e-6)


@pytest.mark.parametrize("regime", REGIMES)
def test_trials_leave_no_trace_in_the_state(regime: str) -> None:
    """Nothing is taken over where only what is better by far would be."""
    for number in range(3):
        bench = with_start_plan(problem_view(read_instance(random_instance(regime, number, nodes=12, tasks=6))))
        if not bench.state.fits[0]:
            continue
        before = rows(bench)
        bench.state.score[0] = 2.0
        for hops in (NOWHERE, hops_of(bench.view)):
            ruin_and_recreate(bench.workspace, like(heat=0.0), hops, PLACED)
            assert bench.state.score[0] == 2.0
            for now, then in zip(rows(bench), before, strict=True):
                assert now == pytest.approx(then, abs=1e-9)


@pytest.mark.parametrize("regime", REGIMES)
def test_it_gains_at_a_hundred_nodes(regime: str) -> None:
    gains = []
    for number in range(4):
        bench = with_start_plan(problem_view(read_instance(random_instance(regime, number, nodes=100, tasks=16))))
        first = float(bench.state.score[0])
        ruin_and_recreate(bench.workspace, shipped().remake, NOWHERE, 300)
        gains.append(float(bench.walk.best_score[0]) - first)
    assert min(gains) >= 0.0
    assert np.mean(gains) > 0.0003


def test_the_same_seed_comes_to_the_same() -> None:
    view = problem_view(read_instance(random_instance("tight", 2, nodes=40, tasks=12)))
    placed = []
    for seed in (0, 0, 1):
        bench = Bench.of(view, seed)
        start = with_start_plan(view)
        start.walk.random[:] = bench.walk.random
        ruin_and_recreate(start.workspace, shipped().remake, NOWHERE, 200)
        placed.append((start.state.node_of.tolist(), float(start.state.score[0])))
    assert placed[0] == placed[1]
    assert placed[0] != placed[2]


def test_few_placements_are_left_to_the_trees() -> None:
    """Then, and where no learned plan is made either, the answer is that of `search`."""
    for seed in range(3):
        problem = read_instance(random_instance("thesis", seed, nodes=6, tasks=3))
        plain, begun_with = SEARCH.solve(problem, seed=seed), SEARCH_LEARNED.solve(problem, seed=seed)
        assert plain.metrics is not None
        assert begun_with.metrics is not None
        assert math.isclose(plain.metrics.composite, begun_with.metrics.composite, abs_tol=1e-9)


def test_many_placements_are_searched_better_with_it() -> None:
    gains = []
    for seed in range(3):
        problem = read_instance(random_instance("tight", seed, nodes=100, tasks=16))
        plain, remade = SEARCH.solve(problem, seed=seed), SEARCH_LEARNED.solve(problem, seed=seed)
        assert plain.metrics is not None
        assert remade.metrics is not None
        gains.append(remade.metrics.composite - plain.metrics.composite)
    assert np.mean(gains) > 0.0
