"""Proposals of schedulers about what jobs get, and the manager's answers: plans, resizes of malleable jobs and changes
of their CPU, revisions of running flows, preemptions. Rates in bit/s, CPU in millicores."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ces_common.jobfile import Preemption
from ces_common.messages.base import Message
from ces_common.messages.bounds import Count, Number, Small
from ces_common.messages.records import AllocationRecord, FlowRecord, Rate

RevisionCause = Literal["link", "room", "goals", "suspended", "resumed"]


class FlowPlan(Message):
    """A flow in a plan: rate in bit/s, path as node names."""

    src: str
    dst: str
    rate: Rate
    path: list[str]


class PolicyAdvice(Message):
    """The learned policy's part in a plan. ``probabilities``: task -> what the policy gave to the task's node when the
    task's turn came."""

    version: str
    probabilities: dict[str, Number] = {}


class PlanProposed(Message):
    """A scheduler's proposal; only the manager's commit makes it true. ``cpu``: with what each worker with elastic CPU
    begins; None: as its file says. ``cards``: task -> ids of the cards that it gets on its node, of those that ask for
    GPUs."""

    plan: str
    job: str
    attempt: Small
    version: Count  # of the snapshot it was made from
    solver: str
    assignments: dict[str, str]
    flows: list[FlowPlan]
    metrics: dict[str, Number] = {}
    considered: dict[str, Any] = {}
    size: Small | None = None  # of a malleable job; None: as it is
    cpu: Annotated[Count, Field(gt=0)] | None = None
    cards: dict[str, list[str]] = {}


class PlanCommitted(Message):
    plan: str
    job: str
    attempt: Small
    solver: str
    metrics: dict[str, Number] = {}
    allocations: list[AllocationRecord] = []
    flows: list[FlowRecord] = []


class PlanRejected(Message):
    plan: str
    job: str
    attempt: Small
    reason: str


class JobRevision(Message):
    """New bandwidth and paths for some flows of a job; its tasks stay where they are."""

    job: str
    attempt: Small
    flows: list[FlowPlan]


class RevisionProposed(Message):
    """A scheduler's proposal for flows of jobs that have their place; only the manager's commit makes all of it true.
    ``cause``: a ``link`` that is down or too slow, or ``room`` that appeared; the others are the manager's own."""

    revision: str
    version: Count  # of the snapshot it was made from
    cause: RevisionCause
    jobs: list[JobRevision]


class RevisionRejected(Message):
    """``stale``: a job of it is not as it was at the revision's version; whether it would fit is not said."""

    revision: str
    reason: str
    stale: bool = False


class ShortFlow(Message):
    """A flow that has less than its minimum; rates in bit/s, 0 where no way is left."""

    src: str
    dst: str
    min: Count
    rate: Rate


class PlanRevised(Message):
    """What a revision changed for one job. ``flows``: those with a new path or rate, as they are now; ``short``: the
    job's flows that now have less than their minimum."""

    revision: str
    job: str
    attempt: Small
    cause: RevisionCause
    flows: list[FlowRecord] = []
    short: list[ShortFlow] = []


class Victim(Message):
    """A job that is to make room. ``how``: it is frozen where it is and keeps its memory, or stopped and queued
    again."""

    job: str
    attempt: Small
    how: Preemption


class PreemptionProposed(Message):
    """A scheduler's proposal to take from running jobs what a more urgent one needs; the manager does all of it or
    none. ``job``: for whom."""

    preemption: str
    version: Count  # of the snapshot from which the victims were chosen
    job: str
    attempt: Small
    victims: list[Victim] = Field(min_length=1)


class PreemptionCommitted(Message):
    """The victims were told, in the same transaction. In no job's stream, as its rejection: tenants are kept apart."""

    preemption: str
    job: str
    victims: list[Victim] = Field(min_length=1)


class PreemptionRejected(Message):
    """``stale``: a job of it is not as it was at the proposal's version."""

    preemption: str
    job: str
    reason: str
    stale: bool = False


class ResizeProposed(Message):
    """A scheduler's proposal for a running malleable job: another size, with a place for every task and flow of it."""

    resize: str
    job: str
    attempt: Small
    version: Count  # of the snapshot it was made from
    solver: str
    size: Annotated[Small, Field(ge=1)]
    assignments: dict[str, str]
    flows: list[FlowPlan]
    metrics: dict[str, Number] = {}
    considered: dict[str, Any] = {}
    cards: dict[str, list[str]] = {}


class ResizeCommitted(Message):
    """All that the job needs at its new size is held from now on, beside what it still has. ``attempt``: the one that
    the new allocations and flows are of; it begins once nothing of the former one is left."""

    resize: str
    job: str
    attempt: Small
    before: Small
    size: Small
    allocations: list[AllocationRecord] = []
    flows: list[FlowRecord] = []


class ResizeEnded(Message):
    """What was held for another size is in use from now on (``done``), or given back, since the job has to go
    elsewhere or is over."""

    resize: str
    job: str
    attempt: Small
    done: bool


class ResizeRejected(Message):
    """``stale``: the job is not as it was at the proposal's version."""

    resize: str
    job: str
    attempt: Small
    reason: str
    stale: bool = False


class CpuProposed(Message):
    """A scheduler's proposal for a running job with elastic CPU: what each worker of its elastic group is to have."""

    change: str
    job: str
    attempt: Small
    version: Count  # of the snapshot it was made from
    cpu: Annotated[Count, Field(gt=0)]


class CpuCommitted(Message):
    """What each worker of the job's elastic group is to have from now on. What goes beyond what it had is held from now
    on; what it no longer needs once its worker surely has no more (CpuReleased)."""

    change: str
    job: str
    attempt: Small
    cpu: Count


class CpuReleased(Message):
    """A worker has no more than it is to have, as its node's agent says: its allocation holds ``cpu`` now."""

    job: str
    attempt: Small
    allocation: str
    task: str
    node: str
    cpu: Count


class CpuRejected(Message):
    """``stale``: the job is not as it was at the proposal's version."""

    change: str
    job: str
    attempt: Small
    reason: str
    stale: bool = False
