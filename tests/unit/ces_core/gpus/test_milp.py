"""Small programmes with named rows, whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from ces_core.gpus.milp import NamedRows


def test_a_knapsack() -> None:
    programme = NamedRows(np.array([10.0, 13.0, 7.0]), np.array([1.0, 1.0, 2.0]))
    for variable, weight in enumerate((5.0, 7.0, 4.0)):
        programme.count("weight", 12.0, variable, weight)
    found = programme.solve(10.0)
    assert found.values is not None
    assert (found.values.tolist(), found.most) == ([1, 1, 0], pytest.approx(23.0))
    programme.count("few", 1.0, 0, 1.0)
    programme.count("few", 1.0, 1, 1.0)
    found = programme.solve(10.0)
    assert found.values is not None
    assert (found.values.tolist(), found.most) == ([0, 1, 1], pytest.approx(20.0))


def test_without_an_answer_there_are_no_values() -> None:
    programme = NamedRows(np.array([1.0]), np.array([1.0]))
    programme.count("never", -1.0, 0, 1.0)
    assert programme.solve(10.0).values is None
