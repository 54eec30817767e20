"""Request and reply between services."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from ces_common.jobfile import JobFile
from ces_common.messages.base import Message
from ces_common.messages.bounds import Amount, Count, Id, Node, Number, PublicKey, Small
from ces_common.messages.events import Lack, QueueStatus, Reason
from ces_common.messages.plans import FlowPlan, PolicyAdvice
from ces_common.messages.request_times import RequestTime

MAX_LOG = 2**20  # bytes of one answer


class SnapshotQuery(Message):
    """Ask the manager for what changed after ``since`` in database ``epoch``; 0 asks for everything. ``removals``:
    whether the asker understands removals; services of former releases do not, and are told everything after one."""

    since: Count = 0
    epoch: Id = ""
    removals: bool = False


class CredentialQuery(Message):
    """A node asks for a credential that ends later. ``public_key``: its own."""

    public_key: PublicKey


class Credential(Message):
    """A node's NATS credential: a JWT for its own key."""

    node: Node
    jwt: str


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


class LogQuery(Message):
    """Ask an agent for a worker's log from a byte offset on, or from the start of its last ``tail`` lines."""

    allocation: Id
    offset: Count = 0
    tail: Small | None = None
    limit: int = Field(default=256 * 1024, ge=1, le=MAX_LOG)


class LinkProbe(Message):
    """Ask an agent to measure the wire to a neighbour: to send as much as the link's shaping lets through, or to count
    what comes over it."""

    peer: Node
    part: Literal["send", "receive"]
    seconds: float = Field(ge=0.1, le=10)


class LinkProbed(Message):
    """``rate``: the highest in bit/s over half of the time or more, of all that the link carried, in Ethernet frames.
    ``round_trip_s``: median of the last echoes from before."""

    rate: Amount
    round_trip_s: Amount | None = None


class LogAnswer(Message):
    found: bool
    offset: Count = 0  # where the next query goes on
    text: Annotated[str, Field(max_length=2 * MAX_LOG)] = ""  # with a remark where something was dropped
    complete: bool = False  # the worker has ended and all of its log was read
