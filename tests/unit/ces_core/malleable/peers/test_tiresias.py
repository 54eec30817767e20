"""Tiresias and its variant by Gittins index, by hand."""

from __future__ import annotations

import math

import pytest
from malleable_jobs import job, moment, running

from ces_core.malleable.peers.tiresias import Gittins, Tiresias, gittins_index

RULE = Tiresias((100.0, 200.0))


def test_who_has_had_less_comes_first() -> None:
    much, little = (
        running(job("much", 1e4, asked=4), 4, attained=150.0, ran_s=40.0),
        running(job("little", 1e4, asked=4)),
    )
    assert RULE(moment(much, little)).sizes == {"little": 4}


def test_in_the_same_queue_who_runs_goes_on() -> None:
    first, second = (
        running(job("first", 1e4, asked=4)),
        running(job("second", 1e4, asked=4), 4, attained=90.0, ran_s=20.0),
    )
    assert RULE(moment(first, second)).sizes == {"second": 4}


def test_who_fits_runs_beside_larger_ones_that_wait() -> None:
    active = [running(job(name, 1e4, asked=asked)) for name, asked in (("a", 2), ("b", 4), ("c", 2))]
    assert RULE(moment(*active)).sizes == {"a": 2, "c": 2}


def test_it_decides_anew_when_somebody_leaves_a_queue() -> None:
    """40 GPU-seconds more at two GPUs are 20 s."""
    found = RULE(moment(running(job("a", 1e4, asked=2), 2, attained=60.0, ran_s=30.0), now_s=5.0))
    assert found.until_s == 25.0


def test_who_has_waited_long_is_promoted() -> None:
    waiting = running(job("waiting", 1e4, asked=4), attained=150.0, ran_s=10.0)
    other = running(job("other", 1e4, asked=4), 4, attained=120.0, ran_s=30.0)
    at_100 = moment(waiting, other, now_s=100.0)
    assert RULE(at_100).sizes == {"other": 4}
    assert Tiresias((100.0, 200.0), promote=5.0)(at_100).sizes == {"waiting": 4}


def test_gittins_index_by_hand() -> None:
    """Of jobs that take 10, 20 and 100, those beyond 10 that end within 15 more are one of two, after 10 or 15."""
    services = (10.0, 20.0, 100.0)
    assert gittins_index(10.0, services, 15.0) == pytest.approx(1 / (10 + 15))
    assert gittins_index(0.0, services, 10.0) == pytest.approx(1 / (10 + 10 + 10))
    assert gittins_index(100.0, services, 10.0) == 0.0


def test_who_is_likely_to_end_soon_comes_first() -> None:
    rule = Gittins((10.0, 20.0, 500.0), delta=12.0)
    near, far = (
        running(job("near", 1e4, asked=4), attained=10.0, ran_s=9.0),
        running(job("far", 1e4, asked=4), 4, attained=50.0),
    )
    found = rule(moment(near, far))
    assert found.sizes == {"near": 4}
    assert found.until_s == 3.0
    assert Gittins(())(moment()).until_s == math.inf
