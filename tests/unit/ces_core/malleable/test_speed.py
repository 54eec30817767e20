"""Speeds at sizes that were not measured: laws of the fit."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_core.malleable.speed import HALF_LIFE_S, LEAST_WEIGHT, POWER, Measurement, Scaled, SpeedModel, fitted, hinted

SIZES = st.integers(1, 512)
rates = st.floats(1e-6, 1e6)
claims = st.dictionaries(SIZES, st.floats(1e-24, 1e12), min_size=2, max_size=6)
measured = st.dictionaries(SIZES, rates, min_size=1, max_size=6).map(
    lambda found: [Measurement(size, rate) for size, rate in sorted(found.items())]
)
parts = st.floats(0, 10).map(lambda part: 0.0 if part < 1e-3 else part)


def law(fixed: float, shared: float, added: float, sizes: list[int]) -> list[Measurement]:
    return [Measurement(n, 1 / (fixed + shared / n + added * (n - 1))) for n in sizes]


@given(measured, SIZES)
def test_every_size_has_a_speed(points: list[Measurement], size: int) -> None:
    rate = fitted(points).rate(size)
    assert 0 < rate < math.inf


@given(claims, claims, SIZES)
def test_whatever_jobs_claim_there_is_a_speed(mine: dict[int, float], another: dict[int, float], size: int) -> None:
    prior, points = ([Measurement(at, rate) for at, rate in each.items()] for each in (another, mine))
    assert 0 < fitted(points, fitted(prior)).rate(size) < math.inf


@given(SIZES, rates, st.sampled_from([POWER, fitted(law(1, 4, 0.1, [1, 2, 4]))]))
def test_one_measurement_is_met_exactly_and_only_scales_what_was_assumed(
    size: int, rate: float, prior: SpeedModel
) -> None:
    model = fitted([Measurement(size, rate)], prior)
    assert model.rate(size) == pytest.approx(rate)
    assert model.rate(3) / model.rate(1) == pytest.approx(prior.rate(3) / prior.rate(1))
    assert model.known


def test_nothing_measured_is_as_assumed() -> None:
    assert fitted([]) is POWER
    assert not POWER.known
    assert POWER.rate(32) == pytest.approx(16)


@given(parts, parts, st.floats(0, 1), st.lists(st.integers(1, 64), min_size=3, max_size=6, unique=True))
def test_what_follows_the_law_is_met_nearly(fixed: float, shared: float, slower: float, sizes: list[int]) -> None:
    """Where workers help up to half of the largest size at least; of 20,000 random cases the worst was 7 % off."""
    if fixed + shared == 0:
        return
    points = law(fixed, shared, slower * shared / 32**2, sorted(sizes))
    model = fitted(points)
    for point in points:
        assert model.rate(point.size) == pytest.approx(point.rate, rel=0.1)


@given(parts, st.floats(0.1, 10), st.lists(st.integers(1, 64), min_size=3, max_size=6, unique=True))
def test_where_workers_cost_nothing_more_of_them_are_never_slower(
    fixed: float, shared: float, sizes: list[int]
) -> None:
    model = fitted(law(fixed, shared, 0, sorted(sizes)))
    for size in range(1, 2 * max(sizes)):
        assert model.rate(size + 1) >= model.rate(size) * 0.99


@given(measured)
def test_speeds_rise_and_then_fall(points: list[Measurement]) -> None:
    """A size between two others is no slower than the slower of these."""
    model = fitted(points, POWER)
    if len(points) < 2:
        return
    found = [model.rate(size) for size in range(1, 129)]
    top = found.index(max(found))
    assert all(later >= earlier * (1 - 1e-9) for earlier, later in pairwise(found[: top + 1]))
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(found[top:]))


@given(measured, SIZES)
def test_no_size_is_faster_than_in_proportion(points: list[Measurement], size: int) -> None:
    if len(points) < 2:
        return
    most = max(point.rate * max(1, size / point.size) for point in points)
    assert fitted(points).rate(size) <= most * (1 + 1e-9)


@given(measured, st.floats(0.01, 100), SIZES)
def test_the_unit_does_not_matter(points: list[Measurement], factor: float, size: int) -> None:
    scaled = [Measurement(each.size, each.rate * factor) for each in points]
    assert fitted(scaled).rate(size) == pytest.approx(factor * fitted(points).rate(size), rel=1e-6)


def test_two_equal_speeds_say_that_workers_do_not_help() -> None:
    model = fitted([Measurement(4, 5.0), Measurement(8, 5.0)])
    assert model.rate(16) < 1.05 * model.rate(8)


def test_a_prior_fills_what_was_not_measured() -> None:
    """Two measurements, between which workers help; beyond, the hint knows of a fall and n^0.8 does not."""
    falling = fitted(law(0.1, 1, 0.05, [1, 2, 4, 8, 16]))
    points = law(0.1, 1, 0.05, [1, 2])
    assert fitted(points, falling).rate(16) < fitted(points).rate(16)


def test_newer_measurements_count_more() -> None:
    """Both cannot be true: the fit of three sizes is nearer to the newer one."""
    before, after = Measurement(4, 2.0, 3 * HALF_LIFE_S), Measurement(4, 4.0)
    rest = [Measurement(1, 1.0), Measurement(8, 6.0)]
    assert before.weight == pytest.approx(1 / 8)
    assert Measurement(4, 2.0, 1e9).weight == LEAST_WEIGHT
    model = fitted([before, after, *rest])
    assert abs(model.rate(4) - 4) < abs(model.rate(4) - 2)


@pytest.mark.parametrize(("size", "rate"), [(0, 1.0), (1, 0.0), (1, -1.0), (1, math.nan), (1, math.inf)])
def test_what_cannot_be_measured_is_refused(size: int, rate: float) -> None:
    with pytest.raises(ValueError, match="cannot have been measured"):
        Measurement(size, rate)


def test_a_scaled_model_keeps_its_shape() -> None:
    assert Scaled(POWER, 2.0).rate(1) == 2.0


@given(hint=st.dictionaries(st.integers(1, 64), st.floats(0.01, 100.0), min_size=1, max_size=6))
def test_what_a_user_says_is_met_exactly(hint: dict[int, float]) -> None:
    model = hinted(hint)
    assert model.known
    assert {size: model.rate(size) for size in hint} == pytest.approx(hint)


@given(st.dictionaries(SIZES, st.sampled_from([1e-9, 1.0, 1e12]), min_size=1, max_size=6), claims, SIZES)
def test_whatever_a_hint_says_there_is_a_speed(hint: dict[int, float], claim: dict[int, float], size: int) -> None:
    assert 0 < hinted(hint).rate(size) < math.inf
    assert 0 < fitted([Measurement(at, rate) for at, rate in claim.items()], hinted(hint)).rate(size) < math.inf


def test_speeds_that_no_fit_can_hold_only_scale_what_was_assumed() -> None:
    with np.errstate(all="ignore"):
        assert 0 < fitted([Measurement(1, 1e-300), Measurement(2, 1e12)]).rate(4) < math.inf


def test_a_hint_of_nothing_leaves_what_is_assumed() -> None:
    assert hinted({}) is POWER


def test_a_hint_that_is_in_proportion_is_so_at_the_sizes_in_between() -> None:
    model = hinted({1: 2.0, 4: 8.0})
    assert model.rate(2) == pytest.approx(4.0, rel=1e-3)
