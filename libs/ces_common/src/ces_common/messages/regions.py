"""Regions: what a manager tells its own federation service, and what regions tell each other."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from ces_common.fields import DatasetName, NodeName, Plain, RegionName
from ces_common.jobfile import JobFile
from ces_common.messages.base import Message
from ces_common.messages.bounds import Amount, Count, Id, Remark, Small
from ces_common.states import JobState

PROTOCOL = 2
MAX_DATASETS = 256  # of a region
MAX_ACCEPTED = 64  # tenants of one region
MAX_REGIONS = 64
MAX_SKIPPED = 1000  # jobs that are not offered again yet
MAX_JOBS = 200  # that are asked about at once
MAX_FOUND = 4 * MAX_JOBS  # tries of them
SILENT_S = 10.0  # after which a region that does not answer is told of
HOLD_S = 15.0  # after which what is held for another region and not committed is released
MAX_MODELS = 32  # of GPU cards in a summary
MAX_HOLDS = 200  # that are told at once, of each side
ROOMS = (1, 2, 4, 8, 16, 32)  # cores, that divide the buckets of the histogram
CARD_ROOMS = (1, 250, 500, 750, 1000)  # thousandths of a GPU card, likewise
TenantName = Annotated[str, StringConstraints(max_length=63)]
RemoteId = Annotated[str, Field(pattern=r"^[0-9A-Z]{26}$")]
"""Of a job in the region where it runs: an ULID, as all jobs have."""
HomeId = Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{1,128}$")]
"""Of a job in the region to which it was submitted."""


class Room(Message):
    """Millicores, bytes, GPUs."""

    cpu: Count = 0
    memory: Count = 0
    gpu: Small = 0

    def holds(self, other: Room) -> bool:
        return self.cpu >= other.cpu and self.memory >= other.memory and self.gpu >= other.gpu


class Border(Message):
    """The way from a region to the gateway of another one, ``region``, which the first one owns. Bit/s that flows may
    reserve: ``total``, and ``free`` of it."""

    region: RegionName
    total: Count
    free: Count
    up: bool = True


class CardRoom(Message):
    """How many GPU cards of a model have nothing free, less than 250, 500, 750 thousandths, less than all, and all of
    themselves. ``model``: empty where it is not known."""

    model: Annotated[str, StringConstraints(max_length=63), Plain] = ""
    rooms: Annotated[list[Small], Field(max_length=len(CARD_ROOMS) + 1)] = []


class Totals(Message):
    """A region in sums, which name no node, address or job. Of nodes that take new work: ``free`` and ``total`` of all
    of them, ``largest`` of each resource what one node has free at most, not necessarily the same one, ``rooms`` how
    many nodes have less than 1, 2, 4, 8, 16, 32 cores free, and 32 or more, ``cards`` what is free of GPU cards, by
    model. ``queued``: jobs that wait. ``wait_s``: seconds until the last of them is expected to start; None where
    nobody knows. ``epoch``: of its database. ``borders``: its own border links."""

    epoch: Id
    nodes: Small = 0
    free: Room = Room()
    total: Room = Room()
    largest: Room = Room()
    rooms: Annotated[list[Small], Field(max_length=len(ROOMS) + 1)] = []
    cards: Annotated[list[CardRoom], Field(max_length=MAX_MODELS)] = []
    queued: Small = 0
    wait_s: Amount | None = None
    datasets: Annotated[list[DatasetName], Field(max_length=MAX_DATASETS)] = []
    borders: Annotated[list[Border], Field(max_length=MAX_REGIONS)] = []


class Gateway(Message):
    """What one region tells the other of its end of the border link between them: ``gateway``, its own node, ``there``,
    the other's, as it was told, the addresses behind its end, and ``bandwidth``, bit/s of its own direction."""

    gateway: NodeName
    there: NodeName
    subnet: IPv4Network
    network: Literal["tc", "none"]
    bandwidth: Annotated[Count, Field(gt=0)]


class Summary(Totals):
    """What one region tells another every two seconds. ``block``: the addresses of its workers. ``accepts``: tenants of
    the region that it is told to, whose jobs may run here. ``made_at``: when its manager was asked for the sums, in
    seconds since the Unix epoch by that region's own clock. ``gateway``: of the border link to that one alone."""

    region: RegionName
    protocol: Small = PROTOCOL
    made_at: Amount = 0.0
    block: IPv4Network
    accepts: Annotated[list[TenantName], Field(max_length=MAX_ACCEPTED)] = []
    gateway: Gateway | None = None


RegionState = Literal["here", "ready", "old", "silent", "refused"]


class RegionView(Message):
    """A region as the one that is asked knows it. ``state``: ``here`` for that one itself; ``old``: its last summary is
    more than ten seconds old, and nothing new is placed there; ``silent``: none was heard yet; ``refused``: ``remark``
    says why nothing is placed there. ``age_s``: of the summary. ``accepts``: tenants of this region whose jobs may run
    there. ``block``: the addresses of its workers, as it told last; ``overlaps``: the regions whose blocks meet it."""

    name: str
    state: RegionState
    age_s: float | None = None
    summary: Totals | None = None
    accepts: list[str] = []
    remark: str | None = None
    block: IPv4Network | None = None
    overlaps: list[str] = []


class RegionList(Message):
    items: list[RegionView] = []


class RemoteStatus(Message):
    """What has become of a job in the region where it runs, as that region's database says."""

    state: JobState
    reason: Remark | None = None
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None


class RemoteJob(Message):
    """A try of a home region, and the job by which it is known where it runs."""

    job: HomeId
    attempt: Small
    remote: RemoteId


# Between a manager and its own region's federation service


class OfferedJob(Message):
    """A waiting job that may run in other ``regions``; ``any`` stands for all. ``not_taken``: what was last said of
    why others took it not."""

    job: Id
    attempt: Small
    file: JobFile
    not_taken: dict[str, str] = {}


class OffersQuery(Message):
    """``skip``: jobs that no region took just now."""

    skip: Annotated[list[Id], Field(max_length=MAX_SKIPPED)] = []


class OfferedJobs(Message):
    items: list[OfferedJob] = []


class Decision(RemoteJob):
    """The home's word that a job runs in that region: the point from which on it runs nowhere else. ``epoch``: of the
    database that held it there; None in what is asked later. ``chosen``: how that region was chosen, where more than
    the rule was to choose."""

    region: RegionName
    epoch: Id | None = None
    chosen: Remark | None = None


class Refusal(Message):
    """Why something was not done; None where it was, or had been before."""

    refusal: str | None = None


Wanted = Literal["commit", "status", "release"]


class AwayJob(Decision):
    """``wanted``: what its region is to be asked next."""

    wanted: Wanted


class AwayQuery(Message):
    """``epochs``: of other regions' databases, as these told last. ``doubted``: the last doubtful job that they were
    asked about: those behind it come next."""

    epochs: Annotated[dict[RegionName, Id], Field(max_length=MAX_REGIONS)] = {}
    doubted: Annotated[str, StringConstraints(max_length=128)] = ""


class DoubtfulJob(Message):
    """A job that may have left home in what home's database has lost, to one of ``regions``; ``any`` stands for all."""

    job: HomeId
    regions: list[str]


class AwayJobs(Message):
    items: list[AwayJob] = []
    doubtful: list[DoubtfulJob] = []


class NotTaken(Message):
    """Why other regions took a waiting job not, by region."""

    job: Id
    attempt: Small
    why: Annotated[dict[RegionName, Remark], Field(max_length=MAX_REGIONS)]


Fate = Literal["held", "waiting", "released", "committed", "unknown"]
"""Of a try, as the database of the region says that has it. ``held``: it has its place, and starts nothing;
``released``: nothing of it ran or will run; ``unknown``: that database knows nothing of it, which says nothing of what
ran."""


class Reported(RemoteJob):
    """What a region said of a job. ``fate``: None where it did not answer. ``status``: of one that runs there.
    ``epoch``: of the database that says so."""

    region: RegionName
    epoch: Id | None = None
    fate: Fate | None = None
    status: RemoteStatus | None = None


class ReportedJobs(Message):
    items: Annotated[list[Reported], Field(max_length=MAX_JOBS)] = []


class PartTry(RemoteJob):
    """``part``: which of those that the try was split into."""

    part: Small


class FoundPart(PartTry):
    region: RegionName


class ClearedJobs(Message):
    """Doubtful jobs of which every region that may have had them has said what it has. ``found``: the tries that were
    committed, also of jobs about which some region has not answered yet; ``parts``: likewise, of those that were
    split."""

    jobs: Annotated[list[HomeId], Field(max_length=MAX_JOBS)] = []
    found: Annotated[list[Decision], Field(max_length=MAX_FOUND)] = []
    parts: Annotated[list[FoundPart], Field(max_length=MAX_FOUND)] = []


class GuestQuery(Message):
    """Whose guests: the region's that asks, as the wire knows it."""

    home: RegionName


class GuestFile(GuestQuery):
    """``file``: with the tenant and the priority that it has here."""

    file: JobFile


class HoldQuery(GuestFile):
    job: HomeId
    attempt: Small


class GuestJobQuery(GuestQuery, RemoteJob):
    pass


class GuestStatusQuery(GuestQuery):
    items: Annotated[list[RemoteJob], Field(max_length=MAX_JOBS)] = []


class GuestLogQuery(GuestJobQuery):
    task: Id
    offset: Count = 0
    tail: Small | None = None


class TriesQuery(Message):
    """Which tries of these jobs does a region have? What it holds and nobody has committed is released by that."""

    jobs: Annotated[list[HomeId], Field(max_length=MAX_JOBS)] = []


class GuestTriesQuery(GuestQuery, TriesQuery):
    pass


class TriesAnswer(Message):
    """Those that were committed, over or not, whole and in parts."""

    epoch: Id
    items: Annotated[list[RemoteJob], Field(max_length=MAX_FOUND)] = []
    parts: Annotated[list[PartTry], Field(max_length=MAX_FOUND)] = []


class AwayLogQuery(Decision):
    task: Id
    offset: Count = 0
    tail: Small | None = None


# Between regions


class Bid(Message):
    file: JobFile


class BidAnswer(Message):
    """``feasible``: it has a place now, of that ``composite``. ``refusal``: why it has none."""

    feasible: bool = False
    composite: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0
    refusal: Remark | None = None


class Hold(Message):
    job: HomeId
    attempt: Small
    file: JobFile


class FateAnswer(Message):
    """``remote``: the job's id there; None where there is none. ``epoch``: of the database that says so."""

    fate: Fate
    epoch: Id | None = None
    remote: RemoteId | None = None
    reason: Remark | None = None


class StatusQuery(Message):
    items: Annotated[list[RemoteJob], Field(max_length=MAX_JOBS)] = []


class StatusAnswer(Message):
    """In the order of the questions."""

    items: Annotated[list[FateAnswer], Field(max_length=MAX_JOBS)] = []
    statuses: Annotated[list[RemoteStatus | None], Field(max_length=MAX_JOBS)] = []


class RemoteLogQuery(RemoteJob):
    task: Id
    offset: Count = 0
    tail: Small | None = None
