"""Gandiva's turns, by hand."""

from __future__ import annotations

import math

from malleable_jobs import job, moment, running

from ces_core.malleable.peers.gandiva import Gandiva

RULE = Gandiva(60.0)


def test_all_run_where_all_fit() -> None:
    found = RULE(moment(running(job("a", 99.0, asked=2)), running(job("b", 99.0, asked=1))))
    assert (found.sizes, found.until_s) == ({"a": 2, "b": 1}, math.inf)


def test_it_is_the_turn_of_who_ran_least() -> None:
    active = [running(job("a", 99.0, asked=4), 4, ran_s=60.0), running(job("b", 99.0, asked=4))]
    found = RULE(moment(*active, now_s=60.0))
    assert (found.sizes, found.until_s) == ({"b": 4}, 120.0)


def test_sizes_share_by_demand() -> None:
    """Two jobs of 2 and four of 1 ask for 8: each size has two of the four GPUs."""
    active = [running(job(f"a{i}", 99.0, asked=2)) for i in range(2)] + [running(job(f"b{i}", 99.0)) for i in range(4)]
    assert RULE(moment(*active)).sizes == {"a0": 2, "b0": 1, "b1": 1}


def test_what_a_size_cannot_use_goes_to_others() -> None:
    """A job of 4 and one of 1: the first has four fifths of four, for which there is no whole job."""
    active = [running(job("a", 99.0, asked=4)), running(job("b", 99.0))]
    assert RULE(moment(*active)).sizes == {"a": 4}
