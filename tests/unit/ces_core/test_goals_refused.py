"""A solver that does not know goals says so, and gives no plan that ignores them."""

from __future__ import annotations

import pytest
from goal_instances import goal_instance

from ces_core.model.errors import ProblemError
from ces_core.model.instance import read_instance
from ces_core.registry import SOLVERS

KNOW_GOALS = {"default", "exact", "search", "search-learned", "search-longrun"}


@pytest.mark.parametrize("name", sorted(SOLVERS.keys() - KNOW_GOALS))
def test_goals_are_not_passed_over_in_silence(name: str) -> None:
    problem = read_instance(goal_instance(3))
    with pytest.raises(ProblemError, match=r"does not know deadlines.*ask search, or exact"):
        SOLVERS[name].solve(problem)
