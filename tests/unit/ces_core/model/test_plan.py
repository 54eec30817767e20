"""What a solver's answer says of itself."""

from __future__ import annotations

import numpy as np
import pytest

from ces_core.model.plan import Considered, Metrics, Plan, Result

CONSIDERED = Considered((), (), np.zeros((0, 0), dtype=np.int8))


@pytest.mark.parametrize(
    ("bound", "optimal"), [(None, False), (0.9, True), (0.9 + 5e-10, True), (0.9 - 1e-12, True), (0.9 + 2e-9, False)]
)
def test_a_plan_at_its_bound_is_optimal(bound: float | None, optimal: bool) -> None:
    assert Result("s", CONSIDERED, Plan({}, ()), Metrics(0.1, 0.9, 0.9), bound=bound).optimal is optimal


def test_no_plan_is_never_optimal() -> None:
    assert not Result("s", CONSIDERED, bound=1.0).optimal
