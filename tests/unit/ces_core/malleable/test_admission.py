"""Admission and the minimum shares of all."""

from __future__ import annotations

import math

from hypothesis import given
from malleable_jobs import job, jobs, running

from ces_core.malleable.admission import admit, earliest_end_s, minimum_shares
from ces_core.malleable.model import MalleableJob

SLOT = 10.0


def test_the_earlier_deadline_books_first() -> None:
    first, second = running(job("first", 160.0, 40.0)), running(job("second", 40.0, 60.0))
    shares = minimum_shares([second, first], 0.0, 4, SLOT)
    assert shares.plans["first"].steps == ((0.0, 4),)
    assert shares.plans["second"].steps == ((0.0, 0), (40.0, 2))
    assert shares.late == []


def test_whoever_makes_another_late_is_refused() -> None:
    under_way = running(job("under-way", 100.0, 60.0), 2)
    let_in, refused = admit([under_way], [job("new", 180.0, 50.0)], 0.0, 4, SLOT)
    assert [one.name for one in refused] == ["new"]
    assert let_in == []


def test_they_are_asked_one_by_one() -> None:
    """The second would not fit beside the first, which does not keep the third out."""
    asked = [job("a", 100.0, 50.0), job("b", 150.0, 50.0), job("c", 90.0, 50.0)]
    let_in, refused = admit([], asked, 0.0, 4, SLOT)
    assert [each.name for each in let_in] == ["a", "c"]
    assert [one.name for one in refused] == ["b"]


def test_best_effort_is_never_refused() -> None:
    let_in, refused = admit([running(job("a", 200.0, 50.0))], [job("b", 1e6, math.inf)], 0.0, 4, SLOT)
    assert [each.name for each in let_in] == ["b"]
    assert refused == []


def test_who_is_late_already_keeps_nobody_out() -> None:
    late = running(job("late", 400.0, 50.0))
    let_in, _ = admit([late], [job("new", 4.0, 200.0)], 0.0, 4, SLOT)
    assert [each.name for each in let_in] == ["new"]


@given(jobs())
def test_more_is_never_booked_than_there_is(found: list[MalleableJob]) -> None:
    shares = minimum_shares([running(one) for one in found], 120.0, 8, SLOT)
    assert min(shares.free.free) >= 0
    assert max(shares.free.free) <= 8
    assert shares.free.free[-1] == 8
    assert {name for name, plan in shares.plans.items() if not plan.on_time} == set(shares.late)


def test_what_others_have_for_a_time_is_not_given_out() -> None:
    """Of four GPUs three are another's for 40 s."""
    shares = minimum_shares([running(job("a", 120.0, 60.0))], 0.0, 4, SLOT, booked=[(0.0, 40.0, 3)])
    assert shares.plans["a"].steps == ((0.0, 1), (40.0, 4))
    assert shares.late == []


def test_who_stays_has_its_smallest_size_until_it_is_done() -> None:
    """The other would need all four GPUs: it gets three, and is late."""
    stays = running(job("stays", 100.0, 500.0), 1)
    stays.stays = True
    shares = minimum_shares([stays, running(job("urgent", 160.0, 40.0, {1: 1.0, 3: 3.0, 4: 4.0}))], 0.0, 4, SLOT)
    assert shares.plans["stays"].steps == ((0.0, 1),)
    assert shares.plans["urgent"].size == 3
    assert shares.late == ["urgent"]


def test_the_earliest_end_is_on_what_the_admitted_leave() -> None:
    shares = minimum_shares([running(job("a", 80.0, 40.0, {2: 2.0}))], 0.0, 4, SLOT)
    assert earliest_end_s(job("new", 160.0, 10.0), shares, 0.0, SLOT) == 60.0
