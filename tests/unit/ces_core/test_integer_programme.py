"""Small integer programmes whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ces_core.integer_programme import Programme


@pytest.mark.parametrize("presolve", [True, False])
def test_variables_are_one_at_most_unless_more_is_said(presolve: bool) -> None:
    gain = np.array([3.0, 2.0])
    for programme, values, most in (
        (Programme(gain), [1, 1], 5.0),
        (Programme(gain, np.array([2.0, 9.0])), [2, 1], 8.0),
    ):
        programme.row((0, 1), (2.0, 2.0), 7.0)
        found = programme.solve(10.0, presolve=presolve)
        assert found.values is not None
        assert (found.values.tolist(), found.most, found.impossible) == (values, pytest.approx(most), False)


def test_what_cannot_be_is_said_to_be_impossible() -> None:
    programme = Programme(np.array([1.0]))
    programme.row((0,), (1.0,), -1.0)
    found = programme.solve(10.0)
    assert (found.values, found.most, found.impossible) == (None, math.inf, True)
