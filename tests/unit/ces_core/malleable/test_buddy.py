"""Buddy placement never fragments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_core.malleable.buddy import keep_places, place

sizes = st.lists(st.sampled_from([0, 1, 2, 4, 8, 16, 32]), max_size=40)
CAPACITY = 64


def taken(begins: dict[str, int], given_sizes: dict[str, int]) -> list[int]:
    return sorted(gpu for name, begin in begins.items() for gpu in range(begin, begin + given_sizes[name]))


def test_larger_ones_come_first() -> None:
    assert place({"a": 1, "b": 4, "c": 2}, 8) == {"b": 0, "c": 4, "a": 6}


def test_who_keeps_its_size_keeps_its_place() -> None:
    assert keep_places({"a": 1, "b": 4, "c": 2}, {"a": 3}, 8) == {"a": 3, "b": 4, "c": 0}


def test_all_move_where_a_place_is_in_the_way() -> None:
    assert keep_places({"a": 1, "b": 8}, {"a": 3}, 9) == {"a": 8, "b": 0}


def test_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(ValueError, match="power of two"):
        place({"a": 3}, 8)
    with pytest.raises(ValueError, match="12 GPUs asked for, 8 there"):
        place({"a": 8, "b": 4}, 8)


@given(sizes, sizes)
def test_whatever_fits_by_number_has_a_place_of_its_own(now: list[int], before: list[int]) -> None:
    def named(drawn: list[int]) -> dict[str, int]:
        kept: dict[str, int] = {}
        for i, size in enumerate(drawn):
            if sum(kept.values()) + size <= CAPACITY:
                kept[f"j{i}"] = size
        return kept

    old, new = named(before), named(now)
    held = place(old, CAPACITY)
    same = {name: begin for name, begin in held.items() if new.get(name) == old[name]}
    begins = keep_places(new, same, CAPACITY)
    gpus = taken(begins, new)
    assert len(gpus) == len(set(gpus)) == sum(new.values())
    assert all(0 <= gpu < CAPACITY for gpu in gpus)
    assert all(begin % new[name] == 0 for name, begin in begins.items())
