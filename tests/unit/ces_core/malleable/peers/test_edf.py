"""Earliest deadline first, by hand."""

from __future__ import annotations

from malleable_jobs import FALLING, job, moment, running

from ces_core.malleable.peers.edf import EarliestDeadlineFirst, late_jobs

ALL, SELECT = EarliestDeadlineFirst(), EarliestDeadlineFirst(admission=True)


def test_the_earliest_takes_all_it_can() -> None:
    found = ALL(moment(running(job("late", 10.0, 99.0)), running(job("early", 10.0, 50.0)), gpus=5))
    assert found.sizes == {"early": 4, "late": 1}


def test_even_where_that_is_slower() -> None:
    assert ALL(moment(running(job("a", 10.0, 99.0, FALLING)))).sizes == {"a": 4}


def test_who_is_late_already_still_comes_first() -> None:
    found = ALL(moment(running(job("past", 10.0, 5.0)), running(job("next", 10.0, 99.0)), now_s=50.0))
    assert found.sizes == {"past": 4}


def test_admission_refuses_who_makes_others_late() -> None:
    """The first needs 25 s of all GPUs, the second as long before it, which is too much until 40 s."""
    found = SELECT(moment(running(job("a", 100.0, 40.0), 4), running(job("b", 100.0, 30.0))))
    assert (found.sizes, found.refused) == ({"a": 4}, {"b"})


def test_who_would_be_late_in_the_end() -> None:
    active = [running(job("a", 100.0, 25.0)), running(job("b", 100.0, 49.0)), running(job("c", 100.0, 75.0))]
    assert late_jobs(active, 0.0, 4) == {"b"}
