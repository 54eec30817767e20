"""The life cycle of jobs: every step is legal, whatever workers do."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ces_common.jobfile import Restart
from ces_common.messages.reports import WorkerStatus
from ces_common.states import AllocationState, IllegalTransition, JobState
from ces_manager.jobs import lifecycle
from ces_manager.jobs.lifecycle import Course, JobStep, Member

J, A = JobState, AllocationState


def course(state: JobState, *states: AllocationState, restarts: int = 0, **restart: object) -> Course:
    members = [Member(f"a{i}", f"w-{i}", f"n{i}", each, stopping_since=5) for i, each in enumerate(states)]
    return Course("j", state, members, restarts=restarts, restart=Restart.model_validate(restart))


def said(
    state: str, member: int = 0, code: int | None = None, incarnation: int = 1, lapsed: bool = False
) -> WorkerStatus:
    return WorkerStatus.model_validate(
        {"allocation": f"a{member}", "incarnation": incarnation, "state": state, "exit_code": code, "lapsed": lapsed}
    )


def hear(of: Course, *workers: WorkerStatus, generation: int = 0) -> list[JobState]:
    lifecycle.report(of, generation, workers, lambda member: True)
    return [step.state for step in of.steps if isinstance(step, JobStep)]


def test_a_job_runs_when_its_last_worker_does() -> None:
    starting = course(J.STARTING, A.PENDING, A.PENDING)
    assert hear(starting, said("running", 0), said("starting", 1)) == []
    assert hear(starting, said("running", 0), said("paused", 1)) == [J.RUNNING]
    assert hear(starting, said("running", 0), said("running", 1)) == [J.RUNNING]  # nothing new


def test_a_job_may_start_and_end_in_one_report() -> None:
    assert hear(course(J.STARTING, A.PENDING), said("exited", 0, 0)) == [J.RUNNING, J.SUCCEEDED]
    for frozen in (J.PAUSED, J.SUSPENDED):
        assert hear(course(frozen, A.RUNNING), said("exited", 0, 0)) == [J.RUNNING, J.SUCCEEDED]


def test_only_a_running_job_is_suspended_and_only_a_suspended_one_is_resumed() -> None:
    for state in J:
        walked = course(state, A.RUNNING)
        lifecycle.suspend(walked, "why")
        assert walked.state is (J.SUSPENDED if state is J.RUNNING else state)
        walked = course(state, A.RUNNING)
        lifecycle.resume(walked)
        assert walked.state is (J.RUNNING if state is J.SUSPENDED else state)


def test_all_of_a_gang_failing_at_once_is_one_restart() -> None:
    running = course(J.RUNNING, A.RUNNING, A.RUNNING, A.RUNNING)
    assert hear(running, *(said("exited", i, 1) for i in range(3))) == [J.STARTING]
    assert running.restarts == 1
    assert {member.incarnation for member in running.members.values()} == {2}


def test_an_exit_without_a_code_is_a_failure() -> None:
    assert hear(course(J.RUNNING, A.RUNNING, policy="never"), said("exited")) == [J.FAILED]
    assert hear(course(J.RUNNING, A.RUNNING, restarts=3, max=3), said("exited", 0, 1)) == [J.FAILED]


@pytest.mark.parametrize("code", [0, 137])
@pytest.mark.parametrize("state", [J.STARTING, J.RUNNING, J.PAUSED, J.SUSPENDED])
def test_a_lease_that_ran_out_is_no_failure_and_no_success(state: JobState, code: int) -> None:
    walked = course(state, A.RUNNING, A.RUNNING, A.SUCCEEDED, policy="never")
    assert hear(walked, said("exited", 0, code, lapsed=True)) == [J.RESCHEDULING]
    assert [member.state for member in walked.members.values()] == [A.LOST, A.STOPPING, A.SUCCEEDED]
    assert walked.restarts == 0
    assert hear(walked, said("exited", 1, code, lapsed=True), generation=9) == [J.RESCHEDULING, J.QUEUED]


@pytest.mark.parametrize("state", [J.PLANNED, J.PREPARING, J.RESCHEDULING, J.CANCELLED])
def test_a_job_without_workers_hears_nothing_of_them(state: JobState) -> None:
    assert hear(course(state, A.PENDING), said("running")) == []


def test_a_stopping_allocation_of_another_incarnation_counts_as_present() -> None:
    stopping = course(J.CANCELLED, A.STOPPING)
    hear(stopping, said("running", incarnation=7), generation=9)
    assert not stopping.released
    hear(stopping, said("exited", 0, 0, incarnation=7), generation=9)
    assert stopping.released


@example(J.STARTING, [A.PENDING, A.STOPPING], [("exited", 0, 1, 0)], "gang")
@given(
    st.sampled_from(JobState),
    st.lists(st.sampled_from(AllocationState), min_size=1, max_size=4),
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "cancel",
                    "fail",
                    "reschedule",
                    "suspend",
                    "resume",
                    "lost",
                    "running",
                    "exited",
                    "refused",
                    "lapsed",
                    "reclaimed",
                ]
            ),
            st.integers(0, 3),
            st.integers(0, 1),
            st.integers(0, 9),
        ),
        max_size=8,
    ),
    st.sampled_from(["gang", "task"]),
)
def test_whatever_happens_every_step_is_legal(
    state: JobState, members: list[AllocationState], happenings: list[tuple[str, int, int, int]], scope: str
) -> None:
    """Also from states that should never come about together."""
    walked = course(state, *members, scope=scope, max=2)
    for what, member, code, generation in happenings:
        match what:
            case "resume":
                lifecycle.resume(walked)
            case "cancel" | "fail" | "suspend":
                getattr(lifecycle, what)(walked, "why")
            case "reschedule":
                lifecycle.reschedule(walked, lifecycle.Cause.DRAINED, "why")
            case "lost":
                lifecycle.node_lost(walked, f"n{member}", lifecycle.Cause.NODE_LOST, "why")
            case "lapsed" | "reclaimed":
                ended = said("exited", member, code).model_copy(update={what: True})
                hear(walked, ended, generation=generation)
            case _:
                hear(walked, said(what, member, code), generation=generation)
    assert walked.state is not J.RESCHEDULING or not walked.released or state is J.RESCHEDULING
    assert walked.restarts <= 2


def test_an_illegal_step_tells_the_history() -> None:
    walked = course(J.RUNNING, A.RUNNING)
    lifecycle.cancel(walked, "why")
    with pytest.raises(IllegalTransition, match="running -> cancelled"):
        walked.move(J.RUNNING)
