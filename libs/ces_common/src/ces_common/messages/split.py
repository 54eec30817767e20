"""Jobs that are split over regions: what a region holds of one, and the words between the regions that have a part."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import Field

from ces_common.fields import NodeName, RegionName
from ces_common.jobfile import MAX_TASKS, JobFile
from ces_common.messages.base import Message
from ces_common.messages.bounds import Count, Id, Remark, Small
from ces_common.messages.pieces import Piece, Place, TaskName, TaskPlace
from ces_common.messages.regions import (
    MAX_JOBS,
    MAX_REGIONS,
    Fate,
    GuestQuery,
    HomeId,
    RemoteId,
    RemoteStatus,
)
from ces_common.states import JobState

MAX_PARTS = 2  # of one job


class PartId(Message):
    """``hold(job.attempt.part)``: a home's try, and which of its parts."""

    job: HomeId
    attempt: Small
    part: Small


class RemotePart(PartId):
    """``remote``: the job by which the part is known in its region."""

    remote: RemoteId


class PartHold(PartId):
    file: JobFile
    piece: Piece


class PartCommit(RemotePart):
    """``places``: of the job's tasks that are not in this part."""

    places: Annotated[list[Place], Field(max_length=MAX_TASKS)] = []


class PartHoldQuery(GuestQuery, PartHold):
    pass


class PartCommitQuery(GuestQuery, PartCommit):
    pass


class PartQuery(GuestQuery, RemotePart):
    pass


class PartAnswer(Message):
    """How a part stands, as the database of its region says. ``ready``: its network is in place, and it waits for the
    word to start; ``started``: it has had that; ``over``: it has ended, and holds nothing any more. ``places``: of its
    tasks, of one that is held."""

    fate: Fate
    remote: RemoteId | None = None
    reason: Remark | None = None
    ready: bool = False
    started: bool = False
    over: bool = False
    status: RemoteStatus | None = None
    places: Annotated[list[TaskPlace], Field(max_length=MAX_TASKS)] = []


# At home

PartWord = Literal["commit", "start", "status", "release"]


class PartState(RemotePart):
    """What the home knows of a part, by what its region said last. ``lost``: nothing of it runs, though its job has not
    ended: it was never committed, or that region knows nothing of it. ``silent``: that region does not answer."""

    region: RegionName
    tasks: list[TaskName]
    committed: bool = False
    ready: bool = False
    started: bool = False
    over: bool = False
    lost: bool = False
    silent: bool = False
    state: JobState | None = None
    reason: Remark | None = None


class SplitDecision(Message):
    """The home's word that a job runs in these parts: the point from which on it runs nowhere else."""

    job: Id
    attempt: Small
    parts: Annotated[list[PartState], Field(min_length=2, max_length=MAX_PARTS)]
    places: Annotated[list[Place], Field(max_length=MAX_TASKS)]


class PartToAsk(RemotePart):
    """``word``: what its region is to be told or asked next. ``places``: of the others, with ``commit``."""

    region: RegionName
    word: PartWord
    places: list[Place] = []


class PartsToAsk(Message):
    items: list[PartToAsk] = []


class PartReport(RemotePart):
    """What a region said of a part. ``answer``: None where it did not answer."""

    region: RegionName
    answer: PartAnswer | None = None


class PartReports(Message):
    items: Annotated[list[PartReport], Field(max_length=MAX_JOBS)] = []


# Border links


class FarEnd(Message):
    """What the region at the other end of a border link tells of its end. ``bandwidth``: bit/s of its own direction."""

    subnet: IPv4Network
    network: Literal["tc", "none"]
    bandwidth: Annotated[Count, Field(gt=0)]


class BorderSetup(Message):
    """A border link: between ``gateway``, a node of this region, and ``there``, one of ``region``. ``bandwidth``: bit/s
    from here to there, which this region owns. ``far``: None until that region was heard."""

    region: RegionName
    gateway: NodeName
    there: NodeName
    bandwidth: Annotated[Count, Field(gt=0)]
    far: FarEnd | None = None


class BorderSetups(Message):
    items: Annotated[list[BorderSetup], Field(max_length=MAX_REGIONS)] = []


class NearEnd(Message):
    """This region's end of the border link to ``region``."""

    region: RegionName
    subnet: IPv4Network
    network: Literal["tc", "none"]


class NearEnds(Message):
    items: list[NearEnd] = []
