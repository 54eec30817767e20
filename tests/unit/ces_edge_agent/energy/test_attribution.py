"""Whose energy it was: parts and rest are the total, whatever is said."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ces_edge_agent.energy.attribution import attributed

NAMES = st.sampled_from(["a", "b", "c", "d"])
JOULE = 1_000_000


def test_work_goes_by_cpu_time_and_idle_by_what_is_reserved() -> None:
    parts = attributed(100 * JOULE, 40 * JOULE, 4.0, {"a": 1.0, "b": 2.0}, {"a": 500, "b": 250}, 1000)
    assert parts == {"a": (15 + 20) * JOULE, "b": (30 + 10) * JOULE}
    assert 100 * JOULE - sum(parts.values()) == (15 + 10) * JOULE  # the system: a quarter of each


def test_who_reserves_and_does_nothing_has_its_share_of_idling() -> None:
    assert attributed(10 * JOULE, 10 * JOULE, 0.0, {"a": 0.0}, {"a": 1000}, 4000) == {"a": 2_500_000}


def test_idling_is_no_more_than_all() -> None:
    assert attributed(5 * JOULE, 9 * JOULE, 1.0, {"a": 1.0}, {"a": 1000}, 1000) == {"a": 5 * JOULE}


@given(
    st.integers(0, 2**62),
    st.integers(-5, 2**62),
    st.floats(0, 1e9),
    st.dictionaries(NAMES, st.floats(0, 1e9)),
    st.dictionaries(NAMES, st.integers(0, 10**9)),
    st.integers(0, 10**6),
)
def test_no_part_is_negative_and_all_are_no_more_than_the_total(
    total: int, idle: int, busy_s: float, used: dict[str, float], reserved: dict[str, int], capacity: int
) -> None:
    parts = attributed(total, idle, busy_s, used, reserved, capacity)
    assert parts.keys() == used.keys() | reserved.keys()
    assert all(part >= 0 for part in parts.values())
    assert sum(parts.values()) <= total


@given(st.integers(0, 10**12), st.integers(1, 10**9), st.integers(1, 10**9))
def test_where_two_did_all_nothing_is_left_but_what_is_rounded(total: int, one: int, other: int) -> None:
    used = {"a": one / 1e6, "b": other / 1e6}
    parts = attributed(total, 0, sum(used.values()), used, {}, 1000)
    assert total - sum(parts.values()) <= 2 + total / 1e12
