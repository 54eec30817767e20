"""The compiled generator of problems against the scalar model and the generator of the benchmarks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from drawn_instances import EVEN, instance_of
from scipy import stats

from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.placement.view import ProblemView, problem_view
from ces_rl.problems.draw import draw, kinds, new_random
from ces_rl.problems.pool import view_of


def test_drawn_problems_are_what_the_model_makes_of_their_instances() -> None:
    pool = draw(new_random(3), kinds(EVEN, nodes=(4, 12)), 60)
    for i in range(60):
        drawn = view_of(pool, i)
        made = problem_view(read_instance(instance_of(drawn)))
        for name, value in drawn._asdict().items():
            np.testing.assert_allclose(value, getattr(made, name), rtol=1e-9, atol=1e-9, err_msg=name)


def figures(views: list[ProblemView]) -> dict[str, list[float]]:
    """What is compared between two sets of problems."""
    return {
        "tasks": [float(len(view.demand)) for view in views],
        "flows": [float(len(view.low)) for view in views],
        "links": [view.link_count for view in views],
        "cpu": [float(x) for view in views for x in view.demand[:, 0]],
        "free memory": [float(x) for view in views for x in view.free[1]],
        "used": [float(x) for view in views for x in view.use[0]],
        "capacity": [float(x) for view in views for x in 1.0 / view.inverse[1]],
        "speed": [float(x) for view in views for x in view.residual],
        "minimum": [float(x) for view in views for x in view.low],
        "maximum": [float(x) for view in views for x in view.high],
        "hops": [float(n) for view in views for n in np.diff(view.path_first)],
    }


@pytest.mark.parametrize("regime", sorted(REGIMES))
def test_draws_follow_the_distributions_of_the_benchmarks(regime: str) -> None:
    pool = draw(new_random(5), kinds({regime: 1.0}), 400)
    drawn = figures([view_of(pool, i) for i in range(400)])
    known = figures([problem_view(read_instance(random_instance(regime, seed))) for seed in range(400)])
    for name, values in drawn.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # p-values of ties are approximate
            same = stats.ks_2samp(values, known[name])
        assert same.pvalue > 1e-3, (name, np.mean(values), np.mean(known[name]))


def test_the_same_seed_draws_the_same() -> None:
    first, again = (draw(new_random(9), kinds(EVEN), 20) for _ in range(2))
    np.testing.assert_array_equal(first.floats, again.floats)
    other = draw(new_random(10), kinds(EVEN), 20)
    assert first.floats.shape != other.floats.shape or (first.floats != other.floats).any()
