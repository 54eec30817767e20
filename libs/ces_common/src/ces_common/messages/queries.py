"""Questions to the scheduler, and its answers."""

from __future__ import annotations

from datetime import datetime

from ces_common.jobfile import JobFile
from ces_common.messages.base import Message
from ces_common.messages.bounds import Amount, Count, Node, Number, Small
from ces_common.messages.events import Lack, QueueStatus, Reason
from ces_common.messages.plans import FlowPlan, PolicyAdvice
from ces_common.messages.request_times import RequestTime


class PlanQuery(Message):
    """Ask the scheduler what would happen to a job, without doing it."""

    job: JobFile


class PlanAnswer(Message):
    """``feasible``: it has a place now. Where it has none, ``position``, ``start_at`` and ``held_by`` tell how it would
    stand in the queue (see QueueStatus); None or empty where that is not known. ``size``: at which a malleable job that
    has a place would start; None of any other. ``cards``: ids of those that each task would get.
    ``cpu``: the millicores with which its workers would begin, where that is not what its file says. ``end_at``: when a
    job with a deadline would have ended, at the earliest where that is too late. ``lacking``: of the nodes that were
    refused for having too little free for a task alone, how much that is; where these are very many, of the first.
    ``requests``: of an application that has a place, how long its requests would take."""

    feasible: bool
    version: Count
    solver: str
    assignments: dict[str, str] = {}
    flows: list[FlowPlan] = []
    metrics: dict[str, Number] = {}
    bound: Number | None = None  # no plan has a higher composite
    reason: Reason | None = None
    position: Small | None = None
    start_at: datetime | None = None
    held_by: list[str] = []
    refused: dict[str, dict[str, str]] = {}  # task -> node -> why not
    lacking: dict[str, dict[str, list[Lack]]] = {}  # task -> node
    decision_ms: Amount = 0.0
    time_limit_s: Amount | None = None  # None: as the solver saw fit
    seed: Count = 0
    policy: PolicyAdvice | None = None  # None: none was followed
    fallback: str | None = None  # why none was followed though the scheduler was told to
    size: Small | None = None
    cards: dict[str, list[str]] = {}
    cpu: Count | None = None
    end_at: datetime | None = None
    requests: list[RequestTime] = []


class QueueQuery(Message):
    """Ask the scheduler how the waiting jobs stand."""


class QueueAnswer(Message):
    """The jobs that went on waiting after the last look at the queue, first one first. ``version``: of the snapshot of
    that look; 0 where there was none yet."""

    version: Count
    statuses: list[QueueStatus] = []


class DrainQuery(Message):
    """Ask the scheduler which jobs of a node would have a place elsewhere."""

    node: Node


class DrainAnswer(Message):
    """``places``: the jobs for which there is one; ``reasons``: job -> why there is none. Of any other job nothing is
    said."""

    version: Count
    places: list[str] = []
    reasons: dict[str, str] = {}
