"""What every registered solver owes, on instances of any kind."""

from __future__ import annotations

from typing import Any

import pytest
from core_instances import instances, rescaled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ces_core.baselines import BASELINES
from ces_core.checker import check
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.model.plan import REFUSALS
from ces_core.model.problem import Basis
from ces_core.registry import DEFAULT, SOLVERS, get_solver

NAMES = [name for name in SOLVERS if name != DEFAULT]

every_solver = pytest.mark.parametrize("name", NAMES)
some = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
few = settings(some, max_examples=25)


@every_solver
@some
@given(
    instance=instances(),
    basis=st.sampled_from(["system", "job"]),
    paths=st.sampled_from([None, None, 1, 3]),
    seed=st.integers(0, 3),
)
def test_plans_break_no_rule_and_refusals_have_a_reason(
    name: str, instance: dict[str, Any], basis: Basis, paths: int | None, seed: int
) -> None:
    problem = read_instance(instance, basis=basis, paths=paths)
    result = SOLVERS[name].solve(problem, seed=seed)
    assert check(instance, result.to_dict(paths=problem.path_set), basis=basis, paths=paths) == []
    assert result.solver == name
    assert (result.reason is None) == result.feasible
    for task in problem.tasks:
        refused = result.considered.refused(task.name)
        assert set(refused.values()) <= set(REFUSALS)
        if result.plan is not None:
            assert result.plan.assignments[task.name] not in refused
    if result.reason is not None:
        assert result.reason.text()
        if result.reason.needed is not None and result.reason.available is not None:
            assert result.reason.needed >= result.reason.available


@every_solver
@few
@given(instance=instances())
def test_what_is_proven_is_true(name: str, instance: dict[str, Any]) -> None:
    problem = read_instance(instance)
    reason = SOLVERS[name].solve(problem).reason
    if reason is not None and reason.proven:
        assert not get_solver("greedy").solve(problem).feasible


@every_solver
@few
@given(instance=instances(), seed=st.integers(0, 3))
def test_the_same_seed_gives_the_same_answer(name: str, instance: dict[str, Any], seed: int) -> None:
    answers = [SOLVERS[name].solve(read_instance(instance), seed=seed).to_dict() for _ in range(2)]
    assert answers[0] == answers[1]


@every_solver
@few
@given(instance=instances())
def test_other_units_change_nothing(name: str, instance: dict[str, Any]) -> None:
    # Powers of two, so that the arithmetic is the same to the last bit.
    here = SOLVERS[name].solve(read_instance(instance))
    there = SOLVERS[name].solve(read_instance(rescaled(instance, 2.0**10, 2.0**20, 2.0**20)))
    assert here.feasible == there.feasible
    if here.plan is not None and there.plan is not None:
        assert here.plan.assignments == there.plan.assignments
        assert here.metrics == there.metrics
    elif here.reason is not None and there.reason is not None:
        assert here.reason.code == there.reason.code


@every_solver
@pytest.mark.parametrize("regime", REGIMES)
def test_plans_of_the_regimes_break_no_rule(name: str, regime: str) -> None:
    for seed in range(10):
        instance = random_instance(regime, seed)
        result = SOLVERS[name].solve(read_instance(instance), seed=seed, time_limit_s=2.0)
        assert check(instance, result.to_dict()) == []


def test_names_and_summaries_tell_the_solvers_apart() -> None:
    assert len({solver.summary for solver in BASELINES}) == len(BASELINES)
    for solver in BASELINES:
        assert SOLVERS[solver.name] is solver
        assert "\n" not in solver.summary
        assert len(solver.summary) <= 52  # one line of `ces solvers` on a terminal of 80 columns
