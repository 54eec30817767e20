"""What the REST API tells the dashboard beside what every client asks for."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from ces_common.fields import Document, NodeName
from ces_common.messages.api import FlowShortfall
from ces_common.messages.base import Message
from ces_common.messages.records import FlowRecord

MAX_POSITIONS = 16384  # of one request
FARTHEST = 1e6
Coordinate = Annotated[float, Field(ge=-FARTHEST, le=FARTHEST, allow_inf_nan=False)]

Position = Annotated[list[Coordinate], Field(min_length=2, max_length=2)]  # to the right, and down


class HeldFlow(Message):
    """A flow that reserves bandwidth: asked (``min``, ``max``), given (``rate``, on ``path``) and carried
    (``measured``, by its first node's last report), in bit/s. ``name``: of its job; ``shortfall``: a link that does not
    carry what was given."""

    job: str
    name: str
    tenant: str
    src: str
    dst: str
    min: int
    max: int
    rate: int
    path: list[str]
    number: int
    measured: float | None = None
    enforced: bool = False
    shortfall: FlowShortfall | None = None


class PastFlow(FlowRecord):
    """What a flow of a job was given then."""

    job: str


class Instant(Message):
    """An event, and when it happened."""

    event: int
    at: datetime


class PastState(Message):
    """The cluster after ``event``, with fields as the live picture has them, without what is not known, such as what
    was used. ``jobs``: those that were not over, or still held something. ``before``: the last event of the commit
    before; None where it cannot be seen. ``change_before``, ``change_after``: the events next to this commit that
    changed what is drawn of the cluster. ``oldest``, ``newest``: between which instants the cluster can be seen."""

    event: int
    at: datetime
    before: int | None = None
    change_before: int | None = None
    change_after: int | None = None
    oldest: Instant
    newest: Instant
    nodes: dict[str, dict[str, Any]] = {}
    links: dict[str, dict[str, Any]] = {}
    media: dict[str, int] = {}
    jobs: dict[str, dict[str, Any]] = {}
    counts: dict[str, int] = {}
    flows: list[PastFlow] = []


class NumberedEvent(Message):
    """``event``: the CloudEvent as streams tell it."""

    number: int
    event: dict[str, Any]


class UsageSamples(Message):
    """Means over ``every_s`` seconds each, beginning at ``at``, the oldest first: of a node its ``cpu`` in millicores
    and ``memory`` in bytes, of a link what is ``used`` in bit/s. None where nothing was reported."""

    every_s: int = 0
    at: list[datetime] = []
    values: dict[str, list[float | None]] = {}


class ProgressCurve(Message):
    """The numbers in a task's lines of progress, by field, and when they came."""

    at: list[datetime] = []
    values: dict[str, list[float | None]] = {}


class JobProgress(Message):
    """The curves of a job's tasks, over all its attempts."""

    id: str
    name: str
    tasks: dict[str, ProgressCurve] = {}


class Layout(Document):
    """Where nodes lie on the map of the cluster, in units of the map."""

    positions: Annotated[dict[NodeName, Position], Field(max_length=MAX_POSITIONS)] = {}
