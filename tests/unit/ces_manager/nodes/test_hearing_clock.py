"""For how long this manager could hear nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ces_manager.nodes.hearing_clock import LONGEST_GAP_S, HearingClock

LOOKS = st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=30)


def test_it_runs_while_it_is_looked_at_and_heartbeats_arrive() -> None:
    hearing = HearingClock()
    for i in range(41):
        hearing.look(i / 4, True)
    assert hearing.seconds() == 10


def test_it_stands_still_while_nodes_cannot_be_heard() -> None:
    hearing = HearingClock()
    for now, hears in [(0.0, True), (1.0, True), (1.5, False), (30.0, False), (31.0, True), (32.0, True)]:
        hearing.look(now, hears)
    assert hearing.seconds() == 1.0 + 1.0


def test_a_stall_of_this_process_counts_for_one_look_at_most() -> None:
    hearing = HearingClock()
    hearing.look(0.0, True)
    hearing.look(60.0, True)
    assert hearing.seconds() == LONGEST_GAP_S


@given(LOOKS)
def test_it_is_never_faster_than_the_clock(looks: list[tuple[float, bool]]) -> None:
    hearing, now = HearingClock(), 0.0
    for passed, hears in looks:
        now, before, seconds = now + passed, now, hearing.seconds()
        hearing.look(now, hears)
        assert seconds <= hearing.seconds() <= seconds + (now - before) + 1e-9
