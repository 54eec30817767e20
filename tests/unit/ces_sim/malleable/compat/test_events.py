"""The list of events of the public simulator."""

from __future__ import annotations

import math

from ces_sim.malleable.compat.events import Events


def test_what_lies_within_a_slot_happens_a_slot_from_now() -> None:
    events = Events([(10.0, "a"), (30.0, "b"), (60.0, "c"), (61.0, "d")])
    events.add_end("x", 45.0)
    events.merge(0.0, 60.0)
    assert events.first_time == 60.0
    event = events.take(60.0)
    assert event is not None
    assert (event.arrivals, event.ends) == (["a", "b", "c"], ["x"])
    assert events.first_time == 61.0


def test_a_single_last_event_stays() -> None:
    events = Events([(10.0, "a")])
    events.merge(0.0, 60.0)
    assert events.first_time == 10.0


def test_an_end_moves_and_leaves_nothing_behind() -> None:
    events = Events([(10.0, "a")])
    events.add_end("x", 20.0)
    events.move_end("x", 20.0, 30.0)
    assert events.take(20.0) is None
    events.look(30.0)
    event = events.take(30.0)
    assert event is not None
    assert event.ends == ["x"]
    assert events.take(10.0) is not None
    assert len(events) == 0
    assert events.first_time == math.inf
