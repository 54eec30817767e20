"""The life cycle of a job and its allocations. Pure: a Course starts from the present states, a function here walks it,
and ``transitions`` stores the steps that it took."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ces_common.exit_codes import signal_name
from ces_common.jobfile import Restart
from ces_common.messages.reports import WorkerStatus
from ces_common.states import (
    ALLOCATION_OVER,
    JOB_OVER,
    JOB_PLACED,
    AllocationState,
    JobState,
    check_allocation,
    check_job,
)
from ces_manager.text import storable

J, A = JobState, AllocationState
# No compute document has named the pending ones of its workers.
_UNSTARTED = frozenset({J.PLANNED, J.PREPARING, J.RESIZING})
_STARTED = frozenset({J.STARTING, J.RUNNING, J.PAUSED, J.SUSPENDED})
_FROZEN = frozenset({J.PAUSED, J.SUSPENDED})
MAX_REASON = 2000  # characters
_GONE = frozenset({"exited", "refused"})


class Cause(StrEnum):
    """Why a job leaves its place to be put elsewhere."""

    NODE_LOST = "node-lost"
    LEASE_ENDED = "lease-ended"
    RECLAIMED = "reclaimed"
    DRAINED = "drained"
    FORGOTTEN = "forgotten"
    PREEMPTED = "preempted"
    TOPOLOGY = "topology"
    LATE = "late"  # a deadline on its way to running was missed
    PEER_AWAY = "peer-away"
    WORKER_FAILED = "worker-failed"


@dataclass(frozen=True, slots=True)
class Member:
    """An allocation, as far as its life cycle goes."""

    id: str
    task: str
    node: str
    state: AllocationState = A.PENDING
    incarnation: int = 1
    stopping_since: int | None = None
    exit_code: int | None = None
    reason: str | None = None

    @property
    def over(self) -> bool:
        return self.state in ALLOCATION_OVER


@dataclass(frozen=True, slots=True)
class JobStep:
    previous: JobState
    state: JobState
    reason: str | None
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class MemberStep:
    previous: AllocationState
    member: Member  # as it is after the step


class Course:
    """A job's way through its states. ``steps``: those taken, in order; each is legal. ``bound``: it is a part of one
    that is split over regions, whose peers know it where it is. ``coming``: a member that its task has moved to and
    that does not run yet: where it fails, the task goes back."""

    def __init__(
        self,
        job: str,
        state: JobState,
        members: Sequence[Member] = (),
        *,
        restarts: int = 0,
        restart: Restart = Restart(),
        bound: bool = False,
        coming: str | None = None,
    ) -> None:
        self.job, self.state, self.bound, self.coming = job, state, bound, coming
        self.restarts, self.restart = restarts, restart
        self.members = {member.id: member for member in members}
        self.steps: list[JobStep | MemberStep] = []

    @property
    def released(self) -> bool:
        """Whether none of its allocations holds capacity."""
        return all(member.over for member in self.members.values())

    def move(self, state: JobState, reason: str | None = None, cause: Cause | None = None) -> None:
        """Raises IllegalTransition."""
        check_job(self.job, self.state, state, self._history())
        self.steps.append(JobStep(self.state, state, reason, cause))
        self.state = state

    def set(self, member: Member) -> None:
        """Replace a member by what has become of it. Raises IllegalTransition."""
        before = self.members[member.id]
        if member.state is not before.state:
            check_allocation(member.id, before.state, member.state, self._history())
        self.members[member.id] = member
        self.steps.append(MemberStep(before.state, member))

    def _history(self) -> list[str]:
        return [
            f"{step.previous} -> {step.state if isinstance(step, JobStep) else step.member.state}"
            for step in self.steps
        ]


def cancel(course: Course, reason: str) -> None:
    if course.state not in JOB_OVER:
        _leave(course, J.CANCELLED, reason)


def fail(course: Course, reason: str) -> None:
    if course.state not in JOB_OVER:
        _leave(course, J.FAILED, reason)


def reschedule(course: Course, cause: Cause, reason: str) -> None:
    """Give up the present placement; the job queues again when nothing of it is left. One that is bound has failed."""
    if course.bound:
        fail(course, reason)
    elif course.state in JOB_PLACED:
        _leave(course, J.RESCHEDULING, reason, cause)


def reclaimed(node: str) -> str:
    """Why a job leaves a node whose device has an owner."""
    return f"node {node} is reclaimed by its owner"


def resize(course: Course, reason: str) -> None:
    """Stop a running job, to start it again at another size."""
    if course.state is J.RUNNING:
        course.move(J.RESIZING, reason)
        for member in list(course.members.values()):
            course.set(replace(member, state=A.STOPPING))


def depart(course: Course, member: str) -> None:
    """Stop a running member, whose task moves to another node."""
    course.set(replace(course.members[member], state=A.STOPPING))


def turn_back(course: Course, reason: str, *, gone: bool = False) -> None:
    """Give up the member that is coming. ``gone``: whatever ran of it has surely ended."""
    member = course.members.get(course.coming or "")
    if member is not None and not member.over and (gone or member.state is not A.STOPPING):
        course.set(replace(member, state=A.LOST if gone else A.STOPPING, reason=reason))


def lose(course: Course, member: str, reason: str) -> None:
    """Whatever ran of a member has surely ended."""
    known = course.members[member]
    if not known.over:
        course.set(replace(known, state=A.LOST, reason=reason))


def suspend(course: Course, reason: str) -> None:
    """Freeze a running job where it is."""
    if course.state is J.RUNNING:
        course.move(J.SUSPENDED, reason)


def resume(course: Course) -> None:
    """Let a suspended job go on where it is."""
    if course.state is J.SUSPENDED:
        course.move(J.RUNNING)


def node_lost(course: Course, node: str, cause: Cause, reason: str) -> None:
    """Whatever ran on ``node`` has surely ended."""
    for member in list(course.members.values()):
        if member.node == node and not member.over:
            course.set(replace(member, state=A.LOST, reason=reason))
    reschedule(course, cause, reason)
    _settle(course)


def report(
    course: Course,
    generation: int,
    workers: Sequence[WorkerStatus],
    on_node: Callable[[Member], bool],
    away: Collection[str] = (),
) -> None:
    """Take in an agent's report, made at ``generation`` of its node's compute document. ``on_node``: which members are
    on that node. ``away``: nodes that are unreachable. States of another incarnation are void."""
    reported = {(worker.allocation, worker.incarnation): _storable(worker) for worker in workers}
    present = {worker.allocation for worker in workers if worker.state not in _GONE}
    for known in [member for member in course.members.values() if on_node(member)]:
        member = course.members[known.id]  # an earlier failure may have changed it meanwhile
        if member.state is A.STOPPING:
            if _confirmed(member, generation, present):
                course.set(replace(member, state=A.STOPPED))
        elif course.state in _STARTED and not member.over:
            worker = reported.get((member.id, member.incarnation))
            if worker is not None:
                _worker(course, member, worker, away)
    _advance(course)
    _settle(course)


def matters(state: JobState, member: Member, generation: int, workers: Sequence[WorkerStatus]) -> bool:
    """Whether a report can move a member at all; most say nothing new and need no transaction."""
    mine = [worker for worker in workers if worker.allocation == member.id]
    if member.state is A.STOPPING:
        return _confirmed(member, generation, {worker.allocation for worker in mine if worker.state not in _GONE})
    return state in _STARTED and any(
        worker.incarnation == member.incarnation
        and (worker.state in _GONE or (member.state is A.PENDING and worker.state in ("running", "paused")))
        for worker in mine
    )


def _storable(worker: WorkerStatus) -> WorkerStatus:
    """With a reason that a database takes."""
    if worker.reason is None:
        return worker
    return worker.model_copy(update={"reason": storable(worker.reason, MAX_REASON)})


def _confirmed(member: Member, generation: int, present: set[str]) -> bool:
    """Whether the agent knows that the member must stop, and has nothing left of it."""
    return member.stopping_since is not None and generation >= member.stopping_since and member.id not in present


def _worker(course: Course, member: Member, worker: WorkerStatus, away: Collection[str]) -> None:
    ended = worker.state == "exited" and worker.exit_code == 0 and not (worker.lapsed or worker.reclaimed)
    if worker.state in ("running", "paused"):
        if member.state is A.PENDING:
            course.set(replace(member, state=A.RUNNING, reason=None))
    elif member.id == course.coming and not ended:
        if worker.state in _GONE:
            course.set(replace(member, state=A.FAILED, exit_code=worker.exit_code, reason=worker.reason))
    elif worker.state == "exited" and worker.lapsed:
        course.set(replace(member, state=A.LOST, reason=worker.reason))
        why = f"{member.task} on {member.node} was ended: its node's lease had run out"
        reschedule(course, Cause.LEASE_ENDED, why)
    elif worker.state == "exited" and worker.reclaimed:
        course.set(replace(member, state=A.STOPPED, reason=worker.reason))
        reschedule(course, Cause.RECLAIMED, reclaimed(member.node))
    elif ended:
        course.set(replace(member, state=A.SUCCEEDED, exit_code=0, reason=None))
    elif worker.state == "exited":
        _failed(course, replace(member, exit_code=worker.exit_code, reason=worker.reason), away)
    elif worker.state == "refused":
        why = f"{member.task} could not be started on {member.node}: {worker.reason or 'no reason given'}"
        course.set(replace(member, state=A.FAILED, reason=worker.reason))
        fail(course, why)


def _failed(course: Course, member: Member, away: Collection[str]) -> None:
    why = f"{member.task} on {member.node} exited {_code(member.exit_code)}" + (
        f": {member.reason}" if member.reason else ""
    )
    silent = _silent_peer(course, member, away)
    if silent is not None:  # it failed for want of that one, and in place it would again: losing a node is no failure
        course.set(replace(member, state=A.FAILED))
        reschedule(course, Cause.PEER_AWAY, f"{why}, while node {silent} of its gang is unreachable")
        return
    if course.restart.policy == "never" or course.restarts >= course.restart.max:
        course.set(replace(member, state=A.FAILED))
        times = "1 restart" if course.restarts == 1 else f"{course.restarts} restarts"
        fail(course, why + (f" (after {times})" if course.restarts else ""))
        return
    course.restarts += 1
    if course.restart.scope == "task":
        course.set(_again(member))
    elif any(other.state not in (A.PENDING, A.RUNNING) for other in course.members.values()):
        # What a peer that is over or stops held may be given away by now, so the gang needs a new place.
        course.set(replace(member, state=A.FAILED))
        reschedule(course, Cause.WORKER_FAILED, why)
    else:
        for other in list(course.members.values()):
            course.set(_again(member if other.id == member.id else other))
        if course.state is J.RUNNING:
            course.move(J.STARTING, why)


def _code(exit_code: int | None) -> str:
    if exit_code is None:
        return "without an exit code"
    signal = signal_name(exit_code)
    return f"with code {exit_code}" + (f" ({signal})" if signal else "")


def _silent_peer(course: Course, member: Member, away: Collection[str]) -> str | None:
    """A node away on which a peer of a member runs that starts again only together with it."""
    if course.restart.policy == "never" or course.restart.scope == "task":
        return None
    peers = (other for other in course.members.values() if other.node != member.node and not other.over)
    return next((other.node for other in peers if other.node in away), None)


def _again(member: Member) -> Member:
    return replace(member, state=A.PENDING, incarnation=member.incarnation + 1)


def _advance(course: Course) -> None:
    states = {member.state for member in course.members.values()}
    if course.state is J.STARTING and states <= {A.RUNNING, A.SUCCEEDED}:
        course.move(J.RUNNING)
    if states == {A.SUCCEEDED} and course.state in {J.RUNNING} | _FROZEN:
        if course.state in _FROZEN:  # it ended before that reached it
            course.move(J.RUNNING)
        course.move(J.SUCCEEDED)


def _leave(course: Course, state: JobState, reason: str, cause: Cause | None = None) -> None:
    stop = A.STOPPED if course.state in _UNSTARTED else A.STOPPING
    course.move(state, reason, cause)
    for member in list(course.members.values()):
        if member.state in (A.PENDING, A.RUNNING):
            course.set(replace(member, state=stop))
    _settle(course)


def _settle(course: Course) -> None:
    if course.state is J.RESCHEDULING and course.released:
        course.move(J.QUEUED)
