"""Life cycles: the tables are total, the design's steps are there, and what is over stays over."""

from itertools import pairwise

import pytest

from ces_common.states import (
    ALLOCATION_OVER,
    ALLOCATION_TRANSITIONS,
    JOB_OVER,
    JOB_PLACED,
    JOB_TRANSITIONS,
    AllocationState,
    IllegalTransition,
    JobState,
    check_allocation,
    check_job,
)

J, A = JobState, AllocationState


def test_every_state_has_a_row_and_every_step_leads_to_a_state() -> None:
    assert set(JOB_TRANSITIONS) == set(J)
    assert set(ALLOCATION_TRANSITIONS) == set(A)
    assert set().union(*JOB_TRANSITIONS.values()) == set(J)
    assert set().union(*ALLOCATION_TRANSITIONS.values()) == set(A)


def test_what_is_over_has_no_way_out_and_everything_else_has_one() -> None:
    assert {state for state, onward in JOB_TRANSITIONS.items() if not onward} == JOB_OVER
    assert {state for state, onward in ALLOCATION_TRANSITIONS.items() if not onward} == ALLOCATION_OVER


def test_no_state_follows_itself() -> None:
    assert not any(state in onward for state, onward in JOB_TRANSITIONS.items())
    assert not any(state in onward for state, onward in ALLOCATION_TRANSITIONS.items())


@pytest.mark.parametrize(
    "way",
    [
        [J.QUEUED, J.PLANNED, J.PREPARING, J.STARTING, J.RUNNING, J.SUCCEEDED],
        [J.RUNNING, J.FAILED],
        [J.RUNNING, J.CANCELLED],
        [J.PLANNED, J.RESCHEDULING, J.QUEUED],
        [J.PREPARING, J.RESCHEDULING],
        [J.STARTING, J.RESCHEDULING],
        [J.RUNNING, J.RESCHEDULING],
        [J.RUNNING, J.PAUSED, J.RUNNING],
        [J.RUNNING, J.SUSPENDED, J.RUNNING],
        [J.SUSPENDED, J.RESCHEDULING],
        [J.RUNNING, J.STARTING],
    ],
    ids=lambda way: "-".join(way),
)
def test_the_designs_ways(way: list[JobState]) -> None:
    for before, after in pairwise(way):
        check_job("j", before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (J.QUEUED, J.RUNNING),
        (J.QUEUED, J.STARTING),
        (J.PAUSED, J.SUCCEEDED),
        (J.PAUSED, J.SUSPENDED),
        (J.SUSPENDED, J.PAUSED),
        (J.RESCHEDULING, J.RUNNING),
    ],
)
def test_short_cuts_are_illegal(before: JobState, after: JobState) -> None:
    with pytest.raises(IllegalTransition):
        check_job("j", before, after)


def test_every_live_job_can_be_cancelled_and_every_placed_one_rescheduled() -> None:
    for state in set(J) - JOB_OVER:
        check_job("j", state, J.CANCELLED)
    for state in JOB_PLACED:
        check_job("j", state, J.RESCHEDULING)


def test_what_is_stopping_never_runs_again() -> None:
    reached, frontier = set[AllocationState](), {A.STOPPING}
    while frontier:
        reached |= frontier
        frontier = set().union(*(ALLOCATION_TRANSITIONS[state] for state in frontier)) - reached
    assert reached == {A.STOPPING, A.STOPPED, A.LOST}


def test_an_illegal_step_carries_the_history() -> None:
    with pytest.raises(IllegalTransition, match=r"from succeeded to running \(history: a -> b; b -> c\)") as it:
        check_job("7", J.SUCCEEDED, J.RUNNING, ["a -> b", "b -> c"])
    assert (it.value.who, it.value.current, it.value.desired) == ("job 7", J.SUCCEEDED, J.RUNNING)
    assert it.value.history == ("a -> b", "b -> c")
    with pytest.raises(IllegalTransition, match=r"allocation x cannot go .*no history given"):
        check_allocation("x", A.LOST, A.RUNNING)
