"""Life cycles of jobs and allocations: which state may follow which. Pure tables; who moves what is elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Generic, Literal, TypeVar

LinkState = Literal["up", "down"]


class JobState(StrEnum):
    QUEUED = "queued"  # waits for a plan
    PLANNED = "planned"  # a plan is committed, capacity is held
    PREPARING = "preparing"  # its network is being programmed
    STARTING = "starting"  # its workers are being started
    RUNNING = "running"
    RESIZING = "resizing"  # stops, to start again at another size once nothing of the former one is left
    PAUSED = "paused"  # by its user, until its user resumes it
    SUSPENDED = "suspended"  # frozen for a more urgent job: keeps its nodes and memory, and waits for the rest
    RESCHEDULING = "rescheduling"  # a node was lost or a deadline passed: waits until its workers are surely gone
    ELSEWHERE = "elsewhere"  # runs in another region, whose word decides what becomes of it
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AllocationState(StrEnum):
    PENDING = "pending"  # committed; its worker is not running yet
    RUNNING = "running"
    STOPPING = "stopping"  # no longer desired; holds its capacity until its agent confirms
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"  # its lease has run out: by its agent's word, or since lease and margin passed without any


J, A = JobState, AllocationState
JOB_OVER = frozenset({J.SUCCEEDED, J.FAILED, J.CANCELLED})
JOB_PLACED = frozenset({J.PLANNED, J.PREPARING, J.STARTING, J.RUNNING, J.RESIZING, J.PAUSED, J.SUSPENDED})
JOB_WAITS = frozenset({J.QUEUED, J.SUSPENDED})  # for the scheduler to say that there is room
ALLOCATION_OVER = frozenset({A.SUCCEEDED, A.FAILED, A.STOPPED, A.LOST})

_ENDS = {J.RESCHEDULING, J.FAILED, J.CANCELLED}
JOB_TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    J.QUEUED: frozenset({J.PLANNED, J.ELSEWHERE, J.FAILED, J.CANCELLED}),
    J.PLANNED: frozenset({J.PREPARING} | _ENDS),
    J.PREPARING: frozenset({J.STARTING} | _ENDS),
    J.STARTING: frozenset({J.RUNNING} | _ENDS),
    # back to starting: its workers restart in place after a failure
    J.RUNNING: frozenset({J.STARTING, J.RESIZING, J.PAUSED, J.SUSPENDED, J.SUCCEEDED} | _ENDS),
    J.RESIZING: frozenset({J.STARTING} | _ENDS),
    J.PAUSED: frozenset({J.RUNNING} | _ENDS),
    J.SUSPENDED: frozenset({J.RUNNING} | _ENDS),
    # back to queued: that region said that nothing of it ran there, nor will
    J.ELSEWHERE: frozenset({J.QUEUED, J.SUCCEEDED, J.FAILED, J.CANCELLED}),
    J.RESCHEDULING: frozenset({J.QUEUED, J.FAILED, J.CANCELLED}),
    J.SUCCEEDED: frozenset(),
    J.FAILED: frozenset(),
    J.CANCELLED: frozenset(),
}
ALLOCATION_TRANSITIONS: dict[AllocationState, frozenset[AllocationState]] = {
    A.PENDING: frozenset({A.RUNNING, A.SUCCEEDED, A.FAILED, A.STOPPING, A.STOPPED, A.LOST}),
    # back to pending: restarted in place under a new incarnation
    A.RUNNING: frozenset({A.PENDING, A.SUCCEEDED, A.FAILED, A.STOPPING, A.STOPPED, A.LOST}),
    A.STOPPING: frozenset({A.STOPPED, A.LOST}),
    A.SUCCEEDED: frozenset(),  # what it held may be another's by now: its task runs again only under a new plan
    A.FAILED: frozenset(),
    A.STOPPED: frozenset(),
    A.LOST: frozenset(),
}

S = TypeVar("S", bound=StrEnum)


class IllegalTransition(Exception, Generic[S]):
    """A transition that the table does not admit, with the history that led there."""

    def __init__(self, who: str, current: S, desired: S, history: Sequence[str] = ()) -> None:
        story = "; ".join(history) or "no history given"
        super().__init__(f"{who} cannot go from {current} to {desired} (history: {story})")
        self.who, self.current, self.desired, self.history = who, current, desired, tuple(history)


def check_job(job: str, current: JobState, desired: JobState, history: Sequence[str] = ()) -> None:
    """Raises IllegalTransition unless ``current -> desired`` is a legal step of a job."""
    if desired not in JOB_TRANSITIONS[current]:
        raise IllegalTransition(f"job {job}", current, desired, history)


def check_allocation(
    allocation: str, current: AllocationState, desired: AllocationState, history: Sequence[str] = ()
) -> None:
    """Raises IllegalTransition unless ``current -> desired`` is a legal step of an allocation."""
    if desired not in ALLOCATION_TRANSITIONS[current]:
        raise IllegalTransition(f"allocation {allocation}", current, desired, history)
