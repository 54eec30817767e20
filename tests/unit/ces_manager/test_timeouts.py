"""Deadlines of states."""

from __future__ import annotations

from ces_common.states import AllocationState, JobState
from ces_manager.timeouts import Timeouts

J, A = JobState, AllocationState


def test_only_passing_states_have_deadlines() -> None:
    timeouts = Timeouts()
    timed = {state for state in JobState if timeouts.patience(state) is not None}
    assert timed == {J.PLANNED, J.PREPARING, J.STARTING}
