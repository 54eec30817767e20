"""Scores known before rates are optimised: an infeasible placement never counts as feasible."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ces_core.model.instance import read_instance
from ces_core.placement.trial import attempt, install
from ces_core.placement.view import problem_view
from ces_core.search.solver import Bench


@pytest.mark.parametrize("least", [10.0, 60.0])
def test_a_flow_that_must_have_what_a_link_has_not_does_not_fit(least: float) -> None:
    """Two flows with fixed rates share a link of capacity 50."""
    problem = read_instance(
        {
            "nodes": [{"name": name, "cpu": 10, "memory": 10} for name in ("a", "b")],
            "links": [{"src": s, "dst": d, "bandwidth": 50} for s, d in (("a", "b"), ("b", "a"))],
            "job": {
                "name": "j",
                "tasks": [{"name": "t0", "cpu": 1, "memory": 1}, {"name": "t1", "cpu": 1, "memory": 1}],
                "flows": [{"src": "t0", "dst": "t1", "min": least, "max": least}],
            },
        }
    )
    bench = Bench.of(problem_view(problem), 0)
    view, work, state = bench.view, bench.work, bench.state
    install(view, work, state, np.array([0, 0], dtype=np.int64))
    assert state.fits[0]
    attempt(view, work, state, np.array([0, 1]), np.array([1]), 1, -math.inf, False)
    assert bool(state.fits[1]) == (least <= 50)
