"""Frames on wires with a delay: when they leave, and what is too much."""

from __future__ import annotations

import pytest

from ces_testbed import delay_line
from ces_testbed.delay_line import FRAME, MOST, SLACK, Frames, Line, room
from ces_testbed.delays import delayed_wires
from ces_testbed.topology import parse_topology


def test_frames_leave_in_order_once_their_line_has_held_them_long_enough() -> None:
    slow, fast, frames = Line(out=1, delay_ns=100, room=1000), Line(out=2, delay_ns=10, room=1000), Frames()
    frames.take(slow, b"first", now=0)
    frames.take(fast, b"second", now=50)
    frames.take(fast, b"third", now=50)
    assert frames.next == 60
    assert frames.due(59) == []
    assert frames.due(60) == [(fast, b"second"), (fast, b"third")]
    assert frames.due(1000) == [(slow, b"first")]
    assert frames.next is None


def test_what_a_line_has_no_room_for_is_lost_and_room_comes_back() -> None:
    line, frames = Line(out=1, delay_ns=10, room=10), Frames()
    for now in range(3):
        frames.take(line, bytes(5), now)
    assert frames.lost == 1
    assert len(frames.due(20)) == 2
    frames.take(line, bytes(10), now=20)
    assert frames.lost == 1


def test_a_wire_has_room_for_what_is_on_its_way_at_its_rate() -> None:
    assert room(rate=80_000_000, delay_us=10_000) == 100_000 + SLACK
    assert room(rate=10**12, delay_us=60_000_000) == MOST


def test_wires_are_delayed_each_way_as_their_links_say() -> None:
    told = """
    nodes: [{name: a, cpu: 1, memory: 1Gi}, {name: b, cpu: 1, memory: 1Gi}, {name: s}]
    links:
      - {src: b, dst: a, bandwidth: 10Mbit, delay: 5ms, both: false}
      - {src: a, dst: b, bandwidth: 20Mbit, both: false}
      - {src: a, dst: s, bandwidth: 10Mbit}
      - {src: s, dst: b, bandwidth: 10Mbit, delay: 2ms, kind: vxlan}
    """
    found = delayed_wires("c", parse_topology(told, "test"))
    assert list(found) == [("a", "b")]
    wire = found["a", "b"]
    assert (wire.a_space, wire.b_space) == ("ces-c-a-dp", "ces-c-b-dp")
    assert (wire.there_us, wire.back_us, wire.rate) == (0, 5000, 20_000_000)


def test_all_wires_together_hold_no_more_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delay_line, "ALL", 3 * (100 + FRAME))
    frames, lines = Frames(), [Line(number, 10, 10_000) for number in range(4)]
    for line in lines:
        frames.take(line, bytes(100), 0)
    assert (frames.lost, frames.held) == (1, 3 * (100 + FRAME))
    assert [line.out for line, _ in frames.due(10)] == [0, 1, 2]
    assert frames.held == 0
