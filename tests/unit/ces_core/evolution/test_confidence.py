"""The confidence sequence covers the mean at all moments at once, and narrows where there is a gain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.evolution.confidence import CAP, FloatArray, interval

LONGEST = 1000
MOMENTS = (10, 30, 100, 300, LONGEST)
Draw = Callable[[np.random.Generator], FloatArray]


def rare_losses(rng: np.random.Generator) -> FloatArray:
    """Mean 0: mostly a gain of 0.001, and one time in 51 a loss of 0.05."""
    return np.where(rng.random(LONGEST) < 1 / 51, -0.05, 0.001)


NULLS: dict[str, tuple[Draw, float]] = {
    "coins": (lambda rng: rng.choice([-CAP, CAP], LONGEST), 0.0),
    "small": (lambda rng: rng.uniform(-0.01, 0.01, LONGEST), 0.0),
    "rare losses": (rare_losses, 0.0),
    "mostly alike": (lambda rng: rng.uniform(-0.05, 0.05, LONGEST) * (rng.random(LONGEST) < 0.1), 0.0),
    "a gain": (lambda rng: rng.uniform(-0.03, 0.05, LONGEST), 0.01),
    "at the edge": (lambda rng: CAP * (2.0 * (rng.random(LONGEST) < 0.95) - 1.0), 0.09),
}


@pytest.mark.parametrize("kind", NULLS)
def test_the_mean_is_covered_at_every_moment_in_19_of_20_sequences(kind: str) -> None:
    """The interval at the end has missed the mean if that of any moment before has. 20 of 400 may; three standard
    deviations of chance are 13 more."""
    draw, mean = NULLS[kind]
    missed = 0
    for seed in range(400):
        found = interval(draw(np.random.default_rng(seed)))
        missed += not found.low <= mean <= found.high
    assert missed <= 33


@pytest.mark.parametrize("kind", NULLS)
def test_what_is_ruled_out_stays_ruled_out(kind: str) -> None:
    gains = NULLS[kind][0](np.random.default_rng(7))
    found = [interval(gains[:moment]) for moment in MOMENTS]
    assert [each.low for each in found] == sorted(each.low for each in found)
    assert [each.high for each in found] == sorted((each.high for each in found), reverse=True)


def test_a_gain_of_five_thousandths_is_seen_within_a_thousand_decisions() -> None:
    """With a spread of 0.02, as between two policies on jobs of one kind."""
    seen = [interval(np.random.default_rng(seed).normal(0.005, 0.02, LONGEST)).low > 0.0 for seed in range(100)]
    assert sum(seen) >= 90


def test_nothing_is_known_before_the_first_observation_and_little_after_it() -> None:
    none, one = interval(np.zeros(0)), interval(np.array([CAP]))
    assert (none.low, none.high, none.count) == (-CAP, CAP, 0)
    assert (one.low, one.count) == (-CAP, 1)


def test_what_is_alike_is_never_found_to_be_better_or_worse() -> None:
    found = interval(np.zeros(5000))
    assert found.low < 0.0 < found.high
    assert found.high - found.low < 0.002


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=60))
@settings(deadline=None, max_examples=60)
def test_gains_and_losses_are_judged_alike_and_cut_off(values: list[float]) -> None:
    gains = np.array(values)
    found, mirrored = interval(gains), interval(-gains)
    assert found.low == pytest.approx(-mirrored.high, abs=1e-9)
    assert -CAP <= found.low <= found.high <= CAP
    assert found == interval(np.clip(gains, -CAP, CAP))
