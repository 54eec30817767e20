"""Optimus: its model of speed and its marginal gains, by hand."""

from __future__ import annotations

import pytest
from malleable_jobs import CONCAVE, job, moment, running

from ces_core.malleable.model import SpeedProfile
from ces_core.malleable.peers.optimus import Optimus, fit_speed, marginal_gain, modelled_rate


def test_the_model_is_found_again() -> None:
    rates = {size: 1 / (8.0 / size + 1.0 + 0.1 * size) for size in (1, 2, 4, 8)}
    assert fit_speed(SpeedProfile.of(rates)) == pytest.approx((8.0, 1.0, 0.1), rel=1e-6)


def test_no_part_of_it_is_negative() -> None:
    profile = SpeedProfile.of({1: 1.0, 2: 3.0, 4: 9.0})  # more than linear
    assert min(fit_speed(profile)) >= 0
    assert modelled_rate(profile, 2) > 0


def test_the_gain_is_time_saved_for_a_gpu() -> None:
    """100 iterations at one and two GPUs are 100 s and 50 s; at four 25 s, for two GPUs more."""
    each = running(job("a", 100.0))
    assert marginal_gain(each, 1, 4) == pytest.approx(50.0)
    assert marginal_gain(each, 2, 4) == pytest.approx(12.5)
    assert marginal_gain(each, 2, 1) == 0.0
    assert marginal_gain(each, 4, 4) == 0.0


def test_everybody_has_one_before_anybody_has_two() -> None:
    found = Optimus()(moment(running(job("long", 1000.0)), running(job("short", 10.0)), gpus=2))
    assert found.sizes == {"long": 1, "short": 1}


def test_the_rest_goes_to_whose_time_it_shortens_most() -> None:
    assert Optimus()(moment(running(job("long", 1000.0)), running(job("short", 10.0)), gpus=4)).sizes == {
        "long": 2,
        "short": 2,
    }
    assert Optimus()(moment(running(job("a", 100.0, rates=CONCAVE)), running(job("b", 100.0)), gpus=3)).sizes == {
        "a": 1,
        "b": 2,
    }
