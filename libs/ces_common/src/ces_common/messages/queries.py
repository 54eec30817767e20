"""Request and reply between services."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from ces_common.jobfile import JobFile
from ces_common.messages.base import Message
from ces_common.messages.events import FlowPlan, PolicyAdvice, QueueStatus, Reason


class SnapshotQuery(Message):
    """Ask the manager for what changed after ``since`` in database ``epoch``; 0 asks for everything."""

    since: int = 0
    epoch: str = ""


class PlanQuery(Message):
    """Ask the scheduler what would happen to a job, without doing it."""

    job: JobFile


class PlanAnswer(Message):
    """``feasible``: it has a place now. Where it has none, ``position``, ``start_at`` and ``held_by`` tell how it would
    stand in the queue (see QueueStatus); None or empty where that is not known."""

    feasible: bool
    version: int
    solver: str
    assignments: dict[str, str] = {}
    flows: list[FlowPlan] = []
    metrics: dict[str, float] = {}
    bound: float | None = None  # no plan has a higher composite
    reason: Reason | None = None
    position: int | None = None
    start_at: datetime | None = None
    held_by: list[str] = []
    refused: dict[str, dict[str, str]] = {}  # task -> node -> why not
    decision_ms: float = 0.0
    time_limit_s: float | None = None  # None: as the solver saw fit
    seed: int = 0
    policy: PolicyAdvice | None = None  # None: none was followed
    fallback: str | None = None  # why none was followed though the scheduler was told to


class QueueQuery(Message):
    """Ask the scheduler how the waiting jobs stand."""


class QueueAnswer(Message):
    """The jobs that went on waiting after the last look at the queue, first one first. ``version``: of the snapshot of
    that look; 0 where there was none yet."""

    version: int
    statuses: list[QueueStatus] = []


class LogQuery(Message):
    """Ask an agent for a worker's log from a byte offset on, or from the start of its last ``tail`` lines."""

    allocation: str
    offset: int = Field(default=0, ge=0)
    tail: int | None = Field(default=None, ge=0)
    limit: int = Field(default=256 * 1024, ge=1, le=2**20)


class LinkProbe(Message):
    """Ask an agent to measure the wire to a neighbour: to send as much as the link's shaping lets through, or to count
    what comes over it."""

    peer: str
    part: Literal["send", "receive"]
    seconds: float = Field(ge=0.1, le=10)


class LinkProbed(Message):
    """``rate``: the highest in bit/s over half of the time or more, of all that the link carried, in Ethernet frames.
    ``round_trip_s``: median of the last echoes from before."""

    rate: float
    round_trip_s: float | None = None


class LogAnswer(Message):
    found: bool
    offset: int = 0  # where the next query goes on
    text: str = ""
    complete: bool = False  # the worker has ended and all of its log was read
