"""Parts of the public simulator whose quirks decide figures: booking by EDF, and where jobs go."""

from __future__ import annotations

from ces_core.malleable.model import SpeedProfile
from ces_sim.malleable.compat.edf import book
from ces_sim.malleable.compat.nodes import fill
from ces_sim.malleable.compat.state import Placements

LINEAR = SpeedProfile.of({1: 1.0, 2: 2.0, 4: 4.0})


def test_edf_books_until_its_end_rounded_up() -> None:
    booked, free = book(30.0, LINEAR, {0.0: 8}, 8, 60.0)
    assert booked == (4, 8)
    assert free == {0.0: 4, 60.0: 8}


def test_edf_takes_what_is_left_and_forgets_who_ends_then() -> None:
    """The second ends in the same slot: from there on as many count as free as when it began."""
    booked, free = book(30.0, LINEAR, {0.0: 4, 60.0: 8}, 8, 60.0)
    assert booked == (4, 8)
    assert free == {0.0: 0, 60.0: 4}


def test_edf_waits_and_then_counts_on_all_gpus() -> None:
    booked, free = book(300.0, LINEAR, {0.0: 0, 60.0: 2}, 8, 60.0)
    assert booked == (0, 60 + 75)
    assert free == {0.0: 0, 60.0: 4, 180.0: 8}


def test_nodes_are_filled_by_what_is_free_in_them() -> None:
    assert fill([8, 4, 2, 2, 1, 0, 16], 32, 8) == [0, 8, 12, 14, 16, -1, -1]


def test_places_are_warm_until_a_restart() -> None:
    placements = Placements(128, slot=2)
    placements.see([(0, 8)])
    placements.decided()
    assert placements.overhead(0, 8) == 10.0
    placements.see([(0, 8), (8, 4)])
    placements.decided()
    assert (placements.overhead(0, 8), placements.overhead(8, 4)) == (2.0, 8.0)
    placements.see([(0, 4)])
    placements.decided()
    assert placements.overhead(0, 4) == 2 + 27 + 6
