"""Where a user will be, learned from where it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_core.adjustment.forecast import Track

STAYS = st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.5, 500)), min_size=1, max_size=12)


def walked(stays: list[tuple[str, float]]) -> Track:
    track = Track()
    for (place, seconds), (then, _) in zip(stays, [*stays[1:], stays[-1]], strict=True):
        track = track.seen(place, seconds, then)
    return track


def test_a_user_that_was_never_seen_to_leave_stays() -> None:
    assert Track().expected_s("a", 300.0) == pytest.approx({"a": 300.0})
    assert Track().seen("a", 50.0, "a").expected_s("a", 45.0) == pytest.approx({"a": 45.0})


def test_it_goes_where_it_went_after_as_long_as_it_stayed() -> None:
    """A stay of 100 s on average: a tenth leaves in each step of ten seconds, and two of three go to b."""
    track = walked([("a", 100.0), ("b", 1e9), ("a", 100.0), ("b", 1e9), ("a", 100.0), ("c", 1e9)])
    expected = track.expected_s("a", 20.0)
    assert expected == pytest.approx({"a": 10 + 9, "b": 2 / 3, "c": 1 / 3}, rel=1e-6)


def test_in_the_long_run_it_is_where_it_spends_its_time() -> None:
    track = walked([("a", 100.0), ("b", 300.0)] * 20)
    expected = track.expected_s("a", 1e5)
    assert expected["b"] / expected["a"] == pytest.approx(3.0, rel=0.1)


@given(stays=STAYS, here=st.sampled_from("abcd"), horizon_s=st.floats(1, 1000))
def test_all_of_the_horizon_is_spent_somewhere(stays: list[tuple[str, float]], here: str, horizon_s: float) -> None:
    expected = walked(stays).expected_s(here, horizon_s)
    assert sum(expected.values()) == pytest.approx(horizon_s)
    assert min(expected.values()) >= -1e-9
    assert expected[here] >= min(horizon_s, 10.0) - 1e-9
