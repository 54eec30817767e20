"""Facts on the event stream: CloudEvents 1.0 in structured JSON mode (cloudevents.io), one data model per type."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, ValidationError
from ulid import ULID

from ces_common import subjects
from ces_common.messages.base import Message
from ces_common.messages.bounds import Amount, Count, ExitCode, Id, Number, Small
from ces_common.messages.cards import Card
from ces_common.messages.checkpoints import CheckpointRestored, CheckpointStored
from ces_common.messages.identities import SessionChanged, TokenChanged
from ces_common.messages.moves import MoveChanged, MoveCommitted
from ces_common.messages.plans import (
    CpuCommitted,
    CpuProposed,
    CpuRejected,
    CpuReleased,
    PlanCommitted,
    PlanProposed,
    PlanRejected,
    PlanRevised,
    PreemptionCommitted,
    PreemptionProposed,
    PreemptionRejected,
    ResizeCommitted,
    ResizeEnded,
    ResizeProposed,
    ResizeRejected,
    RevisionProposed,
    RevisionRejected,
)
from ces_common.messages.secrets import SecretChanged
from ces_common.messages.traces import Traceparent
from ces_common.messages.users import UserMoved
from ces_common.states import AllocationState, JobState, LinkState

D = TypeVar("D", bound=Message)


MAX_RESOURCES = 16  # that one reason names: more than there are


class Lack(Message):
    """What a task asks of a node, and what is free there, which is less. Units as in Reason."""

    resource: Id
    needed: Amount
    available: Amount


class TooFewNodes(Message):
    """Tasks for which too few nodes have enough. ``each``: resource -> what each of them needs at least, units as in
    Reason. ``needed``: how many tasks these are; ``available``: how many fit on the nodes that they may use, one beside
    the other, and ``nodes``: on how many. ``apart``: no such node could ever hold two of them."""

    each: Annotated[dict[Id, Amount], Field(max_length=MAX_RESOURCES)]
    needed: Small
    available: Small
    nodes: Small
    apart: bool


class Reason(Message):
    """The one dominant reason why a job has no place, with its numbers.

    ``resource`` tells the unit of ``needed`` and ``available``: cpu in millicores, memory in bytes, gpu, bandwidth in
    bit/s. ``forever``: no job's end can change it, only a change of the cluster. ``nodes``: where it comes to that, how
    many nodes with how much are needed and there.
    """

    code: str
    text: str
    resource: str | None = None
    needed: Number | None = None
    available: Number | None = None
    where: str | None = None
    forever: bool = False
    nodes: TooFewNodes | None = None


class Score(Message):
    """What a waiting job is worth, in doublings (how many times less another job must take to be worth as much); the
    parts add up to ``total``, and the highest goes first. ``scarce``: the resource of which the job asks for the
    largest share of what is free."""

    fit: Number
    priority: Number
    waiting: Number
    share: Number
    total: Number
    scarce: str


class QueueStatus(Message):
    """How a waiting job stands in the queue.

    ``position`` from 1. ``reason``: what stands in its way now; None where it has not been its turn to be tried.
    ``overdue``: it has waited so long that age alone counts. ``reserved``: it has a reservation. ``start_at``: when it
    is expected to start, as far as running jobs have said when they end: with a reservation no later than this; without
    one no earlier, since others may come before. None where nobody knows. ``held_by``: ids of running jobs that it
    waits for.
    """

    job: str
    position: Annotated[Small, Field(ge=1)]
    score: Score
    reason: Reason | None = None
    overdue: bool = False
    reserved: bool = False
    start_at: datetime | None = None
    held_by: list[str] = []


class JobName(Message):
    id: str
    name: str


class QueueStatusView(QueueStatus):
    """A queue status as people are told of it. ``holders``: the jobs in ``held_by`` with their names."""

    holders: list[JobName] = []


class PlanRefused(Message):
    """The scheduler found no place for a job. ``queue_status``: its place in the queue then; None where it could not be
    queued, as it makes no sense on this cluster."""

    job: str
    attempt: Small
    version: Count
    reason: Reason
    queue_status: QueueStatus | None = None


class DeadlineJudged(Message):
    """What a scheduler expects of a job's deadline. ``end_at``: when the job will have ended, at the earliest where
    that is too late; None where nobody knows. ``refusal``: why a job that must end in time is not admitted."""

    job: str
    attempt: Small
    version: Count
    kept: bool
    end_at: datetime | None = None
    refusal: Reason | None = None


class DeadlineTold(Message):
    """What becomes of a job's deadline: when that is first known, and once more if an admitted one will be missed."""

    job: str
    name: str
    deadline_at: datetime
    kept: bool
    end_at: datetime | None = None
    refusal: Reason | None = None


class JobChanged(Message):
    job: str
    name: str
    attempt: Small
    previous: JobState | None = None
    state: JobState
    reason: str | None = None


class JobWaiting(Message):
    """What a queued job waits for has changed, or when it is expected to start."""

    job: str
    name: str
    reason: Reason
    queue_status: QueueStatusView | None = None


class AllocationChanged(Message):
    allocation: str
    job: str
    task: str
    node: str
    incarnation: Small
    previous: AllocationState | None = None
    state: AllocationState
    exit_code: ExitCode | None = None
    reason: str | None = None


class NodeChanged(Message):
    node: str
    change: Literal[
        "joined",
        "ready",
        "unreachable",
        "cordoned",
        "uncordoned",
        "drained",
        "reclaimed",
        "lent",
        "changed",
        "forgotten",
    ]
    cpu: Count = 0  # millicores
    memory: Count = 0  # bytes
    gpu: Small = 0
    cards: list[Card] = []


class PartCommitted(Message):
    """A part of a job that is split over regions is committed by its ``home``: its network can be laid."""

    job: Id
    attempt: Small
    home: Id


class NetworkReady(Message):
    """network-ctl: every node on which the attempt depends has its share of the network in place. ``move``: all that is
    about is what this move of a task needs."""

    job: str
    attempt: Small
    move: Id | None = None


class NetworkPreparing(Message):
    """network-ctl: the desired network of the attempt is with the agents."""

    job: str
    attempt: Small


class LinkChanged(Message):
    """A directed link went down, came up, or was measured. Rates in bit/s."""

    src: str
    dst: str
    state: LinkState
    reason: str | None = None
    bandwidth: Count  # configured
    measured: Count | None = None


class TopologyChanged(Message):
    links: Small
    media: Small


# (aggregate, type) -> data model. Job and allocation events are named by the state that was reached.
EVENTS: dict[tuple[str, str], type[Message]] = {
    **{("job", state.value): JobChanged for state in JobState},
    ("job", "waiting"): JobWaiting,
    ("job", "deadline"): DeadlineTold,
    ("deadline", "judged"): DeadlineJudged,
    **{("allocation", state.value): AllocationChanged for state in AllocationState},
    ("plan", "proposed"): PlanProposed,
    ("plan", "refused"): PlanRefused,
    ("plan", "committed"): PlanCommitted,
    ("plan", "rejected"): PlanRejected,
    ("plan", "revised"): PlanRevised,
    ("resize", "proposed"): ResizeProposed,
    ("resize", "committed"): ResizeCommitted,
    ("resize", "rejected"): ResizeRejected,
    ("resize", "ended"): ResizeEnded,
    ("cpu", "proposed"): CpuProposed,
    ("cpu", "committed"): CpuCommitted,
    ("cpu", "rejected"): CpuRejected,
    ("cpu", "released"): CpuReleased,
    ("move", "committed"): MoveCommitted,
    ("move", "changed"): MoveChanged,
    ("user", "moved"): UserMoved,
    ("checkpoint", "packed"): CheckpointStored,
    ("checkpoint", "copied"): CheckpointStored,
    ("checkpoint", "restored"): CheckpointRestored,
    ("revision", "proposed"): RevisionProposed,
    ("revision", "rejected"): RevisionRejected,
    ("preemption", "proposed"): PreemptionProposed,
    ("preemption", "committed"): PreemptionCommitted,
    ("preemption", "rejected"): PreemptionRejected,
    ("token", "created"): TokenChanged,
    ("token", "revoked"): TokenChanged,
    ("session", "begun"): SessionChanged,
    ("session", "ended"): SessionChanged,
    ("secret", "stored"): SecretChanged,
    ("secret", "removed"): SecretChanged,
    ("node", "changed"): NodeChanged,
    ("network", "preparing"): NetworkPreparing,
    ("network", "ready"): NetworkReady,
    ("part", "committed"): PartCommitted,
    ("topology", "changed"): TopologyChanged,
    ("link", "changed"): LinkChanged,
}


class CloudEvent(Message, Generic[D]):
    """The envelope. ``subject`` is the aggregate's id, ``sequence`` the manager's number for it (its own only),
    ``actor`` the name of whoever asked for the change; None where nobody did. ``traceparent``: the context in which it
    came about, where a job's attempt is traced (the Distributed Tracing extension of CloudEvents)."""

    specversion: Literal["1.0"] = "1.0"
    id: str = Field(min_length=1, max_length=128)
    source: str
    type: str
    subject: str
    time: datetime
    datacontenttype: Literal["application/json"] = "application/json"
    sequence: Count | None = None
    actor: Id | None = None
    traceparent: Traceparent | None = None
    data: D

    @property
    def bus_subject(self) -> str:
        _, _, aggregate, kind = self.type.split(".", 3)
        return subjects.event(aggregate, kind, self.subject)


def event_type(aggregate: str, kind: str) -> str:
    return f"ces.v1.{aggregate}.{kind}"


def new_event(
    source: str,
    aggregate: str,
    kind: str,
    subject: str,
    data: D,
    now: datetime,
    *,
    event_id: str | None = None,
    traceparent: str | None = None,
) -> CloudEvent[D]:
    """An event of a known type; raises KeyError for an unknown one and TypeError for data of another model."""
    model = EVENTS[(aggregate, kind)]
    if not isinstance(data, model):
        raise TypeError(f"{aggregate}.{kind} carries {model.__name__}, not {type(data).__name__}")
    return CloudEvent(
        id=event_id or str(ULID()),
        source=source,
        type=event_type(aggregate, kind),
        subject=subject,
        time=now,
        traceparent=traceparent,
        data=data,
    )


class MalformedEvent(ValueError):
    """A message that is no event of ours."""


_Envelope = CloudEvent[Message]
# Kept: making one takes milliseconds, and pydantic forgets those that nobody holds.
_TYPED: dict[tuple[str, str], type[CloudEvent[Any]]] = {
    key: CloudEvent[model]  # type: ignore[valid-type]
    for key, model in EVENTS.items()
}


def parse_event(raw: bytes) -> CloudEvent[Any]:
    """The event with its data as the type's model. Raises MalformedEvent, with the field that is wrong."""
    try:
        envelope = _Envelope.model_validate_json(raw)
        version, number, aggregate, kind = envelope.type.split(".")
        typed = _TYPED[(aggregate, kind)]
        if (version, number) != ("ces", "v1"):
            raise KeyError(envelope.type)
        return typed.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors()[0]
        raise MalformedEvent(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (KeyError, ValueError) as error:
        raise MalformedEvent(f"unknown event type: {error}") from error
