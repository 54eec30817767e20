"""The minimum satisfactory share, by hand and against all that could be done."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from malleable_jobs import CONCAVE, LINEAR, profiles

from ces_core.malleable.free import FreeSteps
from ces_core.malleable.model import SpeedProfile
from ces_core.malleable.share import Plan, plan, slot_end

SLOT = 10.0


def share(left: float, deadline: float, free: FreeSteps, rates: dict[int, float], first: int = 0) -> Plan:
    return plan(left, SpeedProfile.of(rates), deadline, free, SLOT, first)


def test_one_gpu_is_enough() -> None:
    found = share(35.0, 50.0, FreeSteps.flat(0.0, 4), LINEAR)
    assert found == Plan(((0.0, 1),), 35.0, 40.0, True)


def test_two_are_needed_after_what_others_hold() -> None:
    """Two GPUs from 20 s on make 60 iterations by 50 s, one made 30; before them, the one that is less than two."""
    free = FreeSteps([0.0, 20.0], [1, 4])
    found = share(55.0, 50.0, free, LINEAR)
    assert found.steps == ((0.0, 1), (20.0, 2))
    assert found.done_s == 38.0
    assert found.end_s == 40.0


def test_work_waits_until_as_much_is_free_as_it_needs() -> None:
    free = FreeSteps([0.0, 20.0], [0, 4])
    found = share(25.0, 50.0, free, LINEAR)
    assert found.steps == ((0.0, 0), (20.0, 1))
    assert (found.done_s, found.end_s, found.on_time) == (45.0, 50.0, True)


def test_a_deadline_that_cannot_be_met_gets_the_most_that_is_free() -> None:
    free = FreeSteps([0.0, 30.0], [2, 4])
    found = share(200.0, 50.0, free, LINEAR)
    assert found.steps == ((0.0, 2), (30.0, 4))
    assert found.done_s == 30 + 35
    assert not found.on_time


def test_work_stops_at_the_deadline_itself_and_not_at_the_end_of_its_slot() -> None:
    """One GPU makes 45 by 45 s; slots would end at 50 s."""
    assert share(45.0, 45.0, FreeSteps.flat(0.0, 4), LINEAR).size == 1
    assert share(46.0, 45.0, FreeSteps.flat(0.0, 4), LINEAR).size == 2


@pytest.mark.parametrize("free_then", [0, 1])
def test_what_changes_between_the_deadline_and_the_end_of_its_slot_is_too_late(free_then: int) -> None:
    found = share(46.0, 45.0, FreeSteps([0.0, 47.0, 50.0], [4, free_then, 4]), LINEAR)
    assert (found.size, found.done_s, found.on_time) == (2, 23.0, True)


def test_best_effort_takes_the_least() -> None:
    found = share(1000.0, math.inf, FreeSteps([0.0, 20.0], [0, 4]), LINEAR)
    assert found.steps == ((0.0, 0), (20.0, 1))
    assert found.on_time


def test_a_size_that_is_given_now_and_the_minimum_afterwards() -> None:
    """Four GPUs until 20 s make 48, and one makes the other 12 from then on."""
    free = FreeSteps([0.0, 20.0], [4, 2])
    found = share(60.0, 60.0, free, CONCAVE, first=4)
    assert found.steps[:2] == ((0.0, 4), (20.0, 1))
    assert found.done_s == 32.0


def test_slots_are_counted_from_now() -> None:
    assert [slot_end(5.0, time, 10.0) for time in (5.0, 6.0, 15.0, 16.0)] == [5.0, 15.0, 15.0, 25.0]


frees = st.lists(st.integers(0, 8), min_size=1, max_size=3).map(
    lambda given: FreeSteps([i * SLOT for i in range(len(given) + 1)], [*given, 8])
)


@settings(max_examples=1000)
@given(frees, profiles, st.floats(0.5, 200.0), st.integers(1, 60))
def test_the_minimum_share_is_that_of_exhaustive_search(
    free: FreeSteps, rates: dict[int, float], left: float, deadline: int
) -> None:
    """In time if any choice of sizes by period is, and the largest size is the least that any choice needs."""
    found = share(left, float(deadline), free, rates)
    profile = SpeedProfile.of(rates)
    ends = [min(end, deadline) for end in (*free.times[1:], math.inf)]
    lengths = [max(0.0, end - begin) for begin, end in zip(free.times, ends, strict=True)]
    choices = [[0, *(size for size in profile.sizes if size <= gpus)] for gpus in free.free]
    needed = [
        max(sizes)
        for sizes in product(*choices)
        if sum(length * profile.rate(size) for length, size in zip(lengths, sizes, strict=True)) >= left * (1 + 1e-9)
    ]
    if needed:
        assert max(size for _, size in found.steps) <= min(needed)
        assert found.done_s <= deadline + 1  # whole seconds
    if found.on_time:
        booked = sum(
            (min(end, deadline) - begin) * profile.rate(size) for begin, end, size in found.pieces() if begin < deadline
        )
        assert booked >= left * (1 - 1e-6)
    for begin, _, size in found.pieces():
        assert size <= free.at(begin)


def test_nothing_that_ever_fits_is_an_error() -> None:
    with pytest.raises(ValueError, match="ever free"):
        share(1.0, 10.0, FreeSteps.flat(0.0, 1), {2: 1.0})
