"""The compiled search counts as the model does."""

from __future__ import annotations

from typing import Any

import pytest
from goal_instances import goal_instance
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.model.instance import read_instance
from ces_core.model.plan import Result
from ces_core.search.goals import solver
from ces_core.search.goals.compiled.state import FIRST_KEPT, LATE
from ces_core.search.solver import SEARCH


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), basis=st.sampled_from(["system", "job"]))
def test_the_value_of_a_plan_is_its_objective(seed: int, basis: Any) -> None:
    problem = read_instance(goal_instance(seed), basis=basis)
    kept: list[float] = []
    usual = solver._solve_rates

    def instead(*given: Any) -> None:
        kept.extend(given[3].score[FIRST_KEPT:].tolist())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver, "_solve_rates", instead)
        result: Result = SEARCH.solve(problem, seed=seed, time_limit_s=0.02)
    assert solver._solve_rates is usual
    if result.metrics is not None:
        assert result.metrics.objective == pytest.approx(max(kept), abs=1e-9)
    elif kept:
        assert max(kept) < -LATE / 2
