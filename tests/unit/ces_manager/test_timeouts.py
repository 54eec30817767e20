"""Deadlines of states."""

from __future__ import annotations

from ces_common.states import AllocationState, JobState
from ces_manager.timeouts import Timeouts

J, A = JobState, AllocationState


def test_only_passing_states_have_deadlines() -> None:
    timeouts = Timeouts()
    timed = {state for state in JobState if timeouts.patience(state) is not None}
    assert timed == {J.PLANNED, J.PREPARING, J.STARTING, J.RESIZING}


def test_a_deadline_doubles_up_to_an_hour_and_is_never_shorter_than_at_first() -> None:
    assert [Timeouts().patience(J.PLANNED, late) for late in (0, 1, 2, 20)] == [60, 120, 240, 3600]
    assert Timeouts(starting_s=7200).patience(J.STARTING, 5) == 7200
