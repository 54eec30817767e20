"""Small programmes whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from ces_core.gpus.milp import Programme


def test_a_knapsack() -> None:
    programme = Programme(np.array([10.0, 13.0, 7.0]), np.array([1.0, 1.0, 2.0]))
    for variable, weight in enumerate((5.0, 7.0, 4.0)):
        programme.count("weight", 12.0, variable, weight)
    values, most = programme.solve(10.0)
    assert values is not None
    assert (values.tolist(), most) == ([1, 1, 0], pytest.approx(23.0))
    programme.count("few", 1.0, 0, 1.0)
    programme.count("few", 1.0, 1, 1.0)
    values, most = programme.solve(10.0)
    assert values is not None
    assert (values.tolist(), most) == ([0, 1, 1], pytest.approx(20.0))


def test_without_an_answer_there_are_no_values() -> None:
    programme = Programme(np.array([1.0]), np.array([1.0]))
    programme.count("never", -1.0, 0, 1.0)
    assert programme.solve(10.0)[0] is None
