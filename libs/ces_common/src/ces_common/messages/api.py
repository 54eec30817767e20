"""What the REST API takes and answers, beside the job file. The client library reads these same models."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field

from ces_common.application import LONGEST_DELAY, User
from ces_common.deadline import JobDeadline
from ces_common.elastic import Elastic
from ces_common.fields import Document, NodeName
from ces_common.flowfile import FlowMode
from ces_common.jobfile import DEFAULT_TENANT
from ces_common.messages.adjustments import LastLook
from ces_common.messages.availability import Availability
from ces_common.messages.base import Message
from ces_common.messages.cards import CardView, Sharing
from ces_common.messages.confinement import Confinement
from ces_common.messages.energy import Energy
from ces_common.messages.events import JobName, QueueStatusView, Reason
from ces_common.messages.moves import MoveView
from ces_common.messages.owner_calendar import OwnerCalendar
from ces_common.messages.profiles import NodeProfile
from ces_common.messages.queries import PlanAnswer
from ces_common.messages.scores import NodeScores
from ces_common.messages.speeds import JobSpeeds
from ces_common.quantities import Bandwidth, Latency
from ces_common.shares import LinkKind
from ces_common.states import AllocationState, JobState, LinkState

T = TypeVar("T")
MAX_LINKS = 65536  # in a topology file
MAX_MEDIA = 4096


class Page(Message, Generic[T]):
    """One page of a list; ``next`` is the cursor of the following page, None on the last."""

    items: list[T]
    next: str | None = None


class TaskView(Message):
    """A task with its current allocation, if it has one. ``cpu`` in millicores, ``memory`` in bytes, as it asks for
    them; ``cpu_desired``: what its worker has instead, since that changes while it runs. ``runtime``, ``network`` and
    ``confinement`` are those of its node: what keeps its worker apart."""

    name: str
    rank: int
    cpu: int
    memory: int
    gpu: int = 0
    cpu_desired: int | None = None
    gpu_share: int = 0  # thousandths of one card, where it asks for a share
    gpu_memory: int = 0  # bytes of that card
    gpu_models: list[str] = []
    cards: list[str] = []  # those that it has
    gpu_sharing: Sharing | None = None  # what keeps its worker to its share of a card
    image: str | None = None
    command: list[str] = []
    allocation: str | None = None
    node: str | None = None
    address: str | None = None
    state: AllocationState | None = None
    incarnation: int = 0
    exit_code: int | None = None
    reason: str | None = None
    progress: dict[str, Any] | None = None  # the last line of progress that it printed
    runtime: str | None = None
    network: str | None = None
    confinement: Confinement | None = None


class FlowView(Message):
    """A flow: what was asked, its ``rate``, and what was measured, in bit/s. ``measured``: mean over the last report in
    which data flowed; ``peak``: the busiest second so far. ``enforced`` is False where a node on its path cannot
    shape."""

    src: str
    dst: str
    mode: FlowMode = "strict"
    min: int
    max: int
    rate: int | None = None
    path: list[str] = []
    number: int | None = None  # names its traffic classes while it is live
    measured: float | None = None
    peak: float | None = None
    enforced: bool = False


class JobSummary(Message):
    """``expected_s``: for how long the job says it runs, in seconds. ``size``: of a malleable job, the replicas of its
    elastic group now. ``deadline_at``: by when it is to have ended; ``expected_end_at``: when it will have, as far as
    the scheduler knows, or, of a job that was refused, would have at the earliest."""

    id: str
    name: str
    state: JobState
    priority: int
    tenant: str = DEFAULT_TENANT
    expected_s: float | None = None
    deadline_at: datetime | None = None
    expected_end_at: datetime | None = None
    size: int | None = None
    tasks: int
    attempt: int
    restarts: int
    nodes: list[str] = []
    region: str | None = None  # another one, in which it runs or ran
    reason: str | None = None
    submitted_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None


class PartView(Message):
    """A part of a job that is split over regions: the ``tasks`` of it that run in ``region``, and what that one said of
    it last."""

    region: str
    tasks: list[str]
    state: str | None = None
    reason: str | None = None


class JobView(JobSummary):
    """``queue_status``: how the job stands in the queue, as far as the scheduler has told; None where it does not wait.
    ``speeds``: what was measured of a malleable job, and ``predicted`` how fast the scheduler takes it to be at its
    size and those next to it, in units/s; empty where it does not run, or the scheduler does not say.
    ``regions``: others in which it may run; ``decided_at``: when it was written down that it runs in ``region``;
    ``committed_at``: when that one first said that it may start; ``remote_state``: what that one said last;
    ``unknown_since``: since when that one has not answered; None where it does; ``not_taken``: why others took it not
    while it waits. ``parts``: of a job that is split over regions.
    ``move``: of one of its tasks, which is under way or was the last; ``moves``: the latest ten, the newest first.
    ``users``: of an application, where they are.
    ``last_look``: at an application that CES changes by itself.
    ``energy``: what was attributed to it in all attempts; None where none was told.
    ``work_error``: by which share of the CPU time predictions for jobs of its name were wrong; None before there were
    any.
    ``remark``: answers a request that changed nothing, such as pausing a paused job, with what is so already."""

    waiting: Reason | None = None
    queue_status: QueueStatusView | None = None
    disconnect: str = "stop"  # left out by none but a manager that knows nothing else
    preemption: str = "stop"
    deadline: JobDeadline | None = None
    elastic: Elastic | None = None
    speeds: JobSpeeds | None = None
    predicted: dict[int, float] = {}
    placement: list[TaskView] = []
    flows: list[FlowView] = []
    regions: list[str] = []
    decided_at: datetime | None = None
    committed_at: datetime | None = None
    remote_state: str | None = None
    unknown_since: datetime | None = None
    not_taken: dict[str, str] = {}
    parts: list[PartView] = []
    move: MoveView | None = None
    moves: list[MoveView] = []
    users: list[User] = []
    last_look: LastLook | None = None
    energy: Energy | None = None
    work_error: float | None = None
    remark: str | None = None


class PlanView(Message):
    """The committed plan of a job, with what was considered on the way."""

    plan: str
    job: str
    attempt: int
    solver: str
    version: int
    committed_at: datetime
    metrics: dict[str, float] = {}
    considered: dict[str, Any] = {}
    assignments: dict[str, str] = {}
    flows: list[FlowView] = []


class FlowSample(Message):
    """A node's report about a flow that it sends over a link: the mean that it ``measured`` since the report before and
    the ``rate`` that the flow's class guaranteed, in bit/s; ``waited``: share of the looks in between at which more was
    to be sent, 0 to 1."""

    at: datetime
    measured: float
    waited: float = 0.0
    rate: int = 0


class FlowHop(Message):
    """A link of a flow's path, and what its source reported of the flow, the oldest first."""

    src: str
    dst: str
    samples: list[FlowSample] = []


class FlowShortfall(Message):
    """Which link of a flow's path does not carry the flow's rate, and how much it carries, in bit/s."""

    src: str
    dst: str
    measured: float
    text: str


class FlowRates(FlowView):
    """A flow with what it carried over time, link by link. ``shortfall`` is left out where all is well, and where the
    program sends less than it might."""

    hops: list[FlowHop] = []
    shortfall: FlowShortfall | None = None


class JobFlowsView(Message):
    """A job's flows over time. ``at``: the manager's time, by which the samples are dated."""

    id: str
    name: str
    state: JobState
    at: datetime
    flows: list[FlowRates] = []


class NodeView(Message):
    """A node with what it has, what is allocated and what its last heartbeat measured. ``energy``: what it has used;
    None where that is unknown. ``remark``: answers a request
    that changed nothing, such as cordoning a cordoned node, with what is so already. ``warning``: what an operator
    should look into."""

    name: str
    state: Literal["ready", "unreachable"]
    cordoned: bool
    reclaimed: bool = False  # its owner has the device back
    calendar: OwnerCalendar | None = None  # when that one usually needs it
    cpu: int
    memory: int
    gpu: int
    cpu_allocated: int
    memory_allocated: int
    gpu_allocated: int | float  # a share of a card is a part of one
    cards: list[CardView] = []  # one for each GPU
    cpu_used: float | None = None
    memory_used: int | None = None
    arch: str
    labels: dict[str, str] = {}
    runtime: str
    network: str
    confinement: Confinement | None = None  # of its workers; None until its agent has told
    scores: NodeScores | None = None  # how fast it is; None where its agent has not measured
    profile: NodeProfile | None = None  # where it is and what it draws; None where its agent was not told
    host_address: str
    subnet: str
    datasets: list[str] = []  # what jobs may read there
    last_heartbeat: datetime | None = None
    allocations: list[str] = []  # "job/task"
    energy: Energy | None = None
    availability: Availability | None = None  # None until something was learned of it
    warning: str | None = None
    remark: str | None = None


class LinkView(Message):
    """A directed link, rates in bit/s: ``bandwidth`` as configured, what flows reserved, what the last report measured.
    ``state`` is what its source last said, with the reason why it is down; ``measured`` is the capacity that the last
    active probe found: the lower of the two capacities counts. ``last_up``, where one link is asked for: the last event
    before it went down, as long as it is down and what took it down is kept."""

    src: str
    dst: str
    bandwidth: int
    reserved: int
    used: float | None = None
    drops: int | None = None
    errors: int | None = None
    kind: str
    medium: str | None = None
    state: LinkState = "up"
    state_since: datetime | None = None
    reason: str | None = None
    measured: int | None = None
    measured_at: datetime | None = None
    round_trip_s: float | None = None
    delay: int = 0  # microseconds, one way, as configured
    availability: Availability | None = None  # None until something was learned of it
    last_up: int | None = None


class LinkProbeRequest(Document):
    """``seconds``: how long the link is filled."""

    seconds: Annotated[float, Field(ge=0.2, le=5)] = 1.0


class LinkProbeView(Message):
    """What an active probe found, in bit/s: what the near end sent (everything on the link, the probe among it), what
    the far end received, and the capacity that follows; None where the sender could not fill the link, which then
    carries no less than was received."""

    src: str
    dst: str
    bandwidth: int  # configured
    sent: float
    received: float
    measured: int | None = None
    round_trip_s: float | None = None


class TopologyView(Message):
    version: int
    nodes: list[NodeView]
    links: list[LinkView]
    media: dict[str, int] = {}


class QueueEntry(Message):
    """``queue_status``: why the job is there in the queue, and until when about; None where the scheduler has not told.
    ``state``: a suspended job waits, too."""

    position: int
    id: str
    name: str
    state: JobState = JobState.QUEUED
    tenant: str = DEFAULT_TENANT
    priority: int
    submitted_at: datetime
    deadline_at: datetime | None = None
    reason: Reason | None = None
    queue_status: QueueStatusView | None = None


class QueuePage(Page[QueueEntry]):
    """``remark``: why the order is not the scheduler's own as of now; None where it is."""

    remark: str | None = None


class PlanForecast(PlanAnswer):
    """``holders``: the jobs in ``held_by`` with their names."""

    holders: list[JobName] = []


class TopologyLink(Document):
    """A link in a topology file. ``both``: a wire, that is, the link back as well. ``delay``: one way, in
    microseconds."""

    src: NodeName
    dst: NodeName
    bandwidth: Bandwidth
    delay: Annotated[Latency, Field(le=LONGEST_DELAY)] = 0
    both: bool = True
    kind: LinkKind = "veth"
    medium: NodeName | None = None


class TopologyMedium(Document):
    name: NodeName
    bandwidth: Bandwidth


class TopologyFile(Document):
    """``PUT /v1/topology``: the whole set of links and media."""

    links: Annotated[list[TopologyLink], Field(max_length=MAX_LINKS)] = []
    media: Annotated[list[TopologyMedium], Field(max_length=MAX_MEDIA)] = []


class Problem(Message):
    """An error as RFC 9457 has it. ``errors``: field and remedy for each wrong field."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    errors: list[dict[str, str]] = []
