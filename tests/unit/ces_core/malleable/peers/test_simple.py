"""Min and Random, by hand."""

from __future__ import annotations

from malleable_jobs import job, moment, running

from ces_core.malleable.peers.simple import RandomSize, smallest


def test_every_job_has_its_smallest_size() -> None:
    active = [running(job("a", 9.0)), running(job("b", 9.0, rates={2: 1.0, 4: 2.0}))]
    assert smallest(moment(*active)).sizes == {"a": 1, "b": 2}


def test_in_the_order_of_arrival_as_long_as_they_fit() -> None:
    active = [running(job(name, 9.0, rates={2: 1.0})) for name in "abc"]
    assert smallest(moment(*active, gpus=5)).sizes == {"a": 2, "b": 2}


def test_who_runs_goes_on() -> None:
    active = [running(job("new", 9.0)), running(job("old", 9.0), 4, ran_s=1.0)]
    assert smallest(moment(*active)).sizes == {"old": 4}
    assert RandomSize()(moment(*active)).sizes == {"old": 4}


def test_random_sizes_are_all_those_that_fit() -> None:
    drawn = {RandomSize(seed)(moment(running(job("a", 9.0)), gpus=2)).sizes["a"] for seed in range(20)}
    assert drawn == {1, 2}


def test_the_same_seed_draws_the_same() -> None:
    now = moment(*(running(job(f"j{i}", 9.0)) for i in range(5)), gpus=16)
    assert RandomSize(7)(now) == RandomSize(7)(now)
    assert len({tuple(RandomSize(seed)(now).sizes.items()) for seed in range(10)}) > 1
