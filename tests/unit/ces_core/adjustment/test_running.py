"""Which limits a running plan breaks, beside the independent checker."""

from __future__ import annotations

from adjusted_jobs import answer, changed, running_job
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ces_core.adjustment.running import RunningPlan, broken_limits
from ces_core.checker import check
from ces_core.model.instance import read_instance
from ces_core.model.service import Service
from ces_core.search.goals.domains import all_paths

MORE = {"metric", "request-time"}
"""What the checker finds besides: numbers that the answer says."""


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_it_breaks_a_limit_exactly_where_the_checker_says_so(seed: int) -> None:
    found = running_job(seed, 2 + seed % 2)
    assume(found is not None)
    assert found is not None
    instance = changed(found[0], seed)
    problem = read_instance(instance)
    broken = broken_limits(Service(problem), RunningPlan.of(problem, found[1], all_paths(problem)))
    violations = {each.code for each in check(instance, answer(problem, found[1]))} - MORE
    assert bool(broken) == bool(violations), (broken, violations)
