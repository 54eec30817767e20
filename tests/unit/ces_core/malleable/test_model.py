"""Speed profiles: which sizes there are and how fast they are."""

from __future__ import annotations

import math

import pytest

from ces_core.malleable.model import SpeedProfile


def test_sizes_that_do_not_run_are_left_out() -> None:
    profile = SpeedProfile.of({1: 2.0, 2: 0.0, 4: math.nan, 8: 3.0})
    assert profile.sizes == (1, 8)
    assert profile.rates == (2.0, 3.0)


def test_levels_around_a_size() -> None:
    profile = SpeedProfile.of({1: 1.0, 2: 1.5, 8: 4.0})
    assert [profile.fitting(free) for free in (0, 1, 7, 8, 99)] == [0, 1, 2, 8, 8]
    assert [profile.above(size) for size in (0, 1, 2, 8)] == [1, 2, 8, 0]
    assert profile.rate(0) == 0.0


def test_rising_sizes_are_those_faster_than_all_smaller() -> None:
    profile = SpeedProfile.of({1: 1.0, 2: 3.0, 4: 2.0, 8: 3.0, 16: 3.5})
    assert profile.rising.sizes == (1, 2, 16)


@pytest.mark.parametrize(
    ("sizes", "rates"), [((2, 1), (1.0, 2.0)), ((0,), (1.0,)), ((1,), (0.0,)), ((), ()), ((1,), ())]
)
def test_no_profile(sizes: tuple[int, ...], rates: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"size|rate"):
        SpeedProfile(sizes, rates)
