"""The step function of free GPUs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ces_core.malleable.free import FreeSteps


def test_what_is_booked_is_not_free_until_its_end() -> None:
    free = FreeSteps.flat(0.0, 8)
    free.book([(0.0, 10.0, 3), (10.0, 20.0, 5)])
    assert (free.times, free.free) == ([0.0, 10.0, 20.0], [5, 3, 8])
    assert [free.at(time) for time in (0, 9.9, 10, 25)] == [5, 5, 3, 8]


def test_equal_neighbours_merge() -> None:
    free = FreeSteps.flat(0.0, 8)
    free.book([(0.0, 10.0, 3)])
    free.book([(10.0, 20.0, 3)])
    assert (free.times, free.free) == ([0.0, 20.0], [5, 8])


def test_for_ever() -> None:
    free = FreeSteps.flat(5.0, 2)
    free.book([(7.0, float("inf"), 2)])
    assert (free.times, free.free) == ([5.0, 7.0], [2, 0])


pieces = st.tuples(st.integers(0, 50), st.integers(1, 50), st.integers(0, 4)).map(
    lambda one: (float(one[0]), float(one[0] + one[1]), one[2])
)


@given(st.lists(pieces, max_size=12), st.integers(0, 99))
def test_bookings_add_up_and_can_be_undone(booked: list[tuple[float, float, int]], time: int) -> None:
    free = FreeSteps.flat(0.0, 100)
    free.book(booked)
    assert free.at(time) == 100 - sum(size for begin, end, size in booked if begin <= time < end)
    free.book([(begin, end, -size) for begin, end, size in booked])
    assert (free.times, free.free) == ([0.0], [100])
