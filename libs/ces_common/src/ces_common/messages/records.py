"""The manager's state as it hands it to the scheduler and the controllers: records, each with the version of the
database at which it last changed, so that a reader asks only for what changed since it last read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from ces_common.application import Objective, Request, User
from ces_common.deadline import JobDeadline
from ces_common.disconnect import STOP, Disconnect
from ces_common.jobfile import DEFAULT_TENANT, Flow, JobFile, Preemption, Restart, Task
from ces_common.messages.base import Message
from ces_common.messages.bounds import Count, ExitCode, Id, Number, Port, Small
from ces_common.messages.cards import Card
from ces_common.messages.checkpoints import JobCheckpoints
from ces_common.messages.confinement import Confinement
from ces_common.messages.owner_calendar import OwnerCalendar
from ces_common.messages.pieces import Part
from ces_common.messages.profiles import NodeProfile
from ces_common.messages.speeds import JobSpeeds
from ces_common.runtime import RuntimeKind
from ces_common.self_adjustment import SelfAdjustment
from ces_common.shares import LinkKind, usable
from ces_common.states import ALLOCATION_OVER, AllocationState, JobState, LinkState
from ces_common.task_move import MoveState


class NodeRecord(Message):
    """A node. ``cpu`` in millicores, ``memory`` in bytes; a switch has none of either. ``speeds``: class of work -> how
    many times the reference core one of its threads is, as its agent measured it; what is absent was not measured."""

    name: str
    cpu: Count
    memory: Count
    gpu: Small = 0
    cards: list[Card] = []  # one for each GPU
    arch: str = ""
    labels: dict[str, str] = {}
    runtime: RuntimeKind = RuntimeKind.PROCESS
    network: Literal["tc", "none"] = "none"
    host_address: str = "127.0.0.1"
    subnet: str = ""  # its workers' addresses, CIDR; committed by the manager
    state: Literal["ready", "unreachable"] = "ready"
    cordoned: bool = False
    reclaimed: bool = False  # its owner has the device back
    calendar: OwnerCalendar | None = None  # when that one usually needs it
    datasets: list[str] = []  # what it offers to read
    region: str | None = None  # another one, whose gateway it stands for: nothing of it is here
    data_port: Port = 0  # where, on a node without a data plane; 0: not known
    confinement: Confinement | None = None  # of its workers; None until its agent has told
    link_keys: list[str] = []  # by which its links are encrypted; of two, the second is to replace the first
    link_port: Port = 0  # where its host takes their packets
    public_key: str = ""  # with which it has joined
    least_generation: Count = 0  # that its desired workers must have before any of them starts
    profile: NodeProfile | None = None  # None: its agent has said none of it
    speeds: dict[str, Number] = {}
    version: Count = 0


class LinkRecord(Message):
    """A directed link; ``bandwidth`` is its configured capacity in bit/s as HTB counts (Ethernet frames), ``measured``
    what an active probe found, ``delay`` in microseconds, one way, as configured. Nothing may be placed on one that is
    down; it stays where it is, so that it can come up.
    """

    src: str
    dst: str
    bandwidth: Annotated[Count, Field(gt=0)]
    kind: LinkKind = "veth"
    medium: str | None = None
    state: LinkState = "up"
    measured: Annotated[Count, Field(gt=0)] | None = None
    delay: Count = 0

    @property
    def up(self) -> bool:
        return self.state == "up"

    @property
    def capacity(self) -> int:
        """What it carries in bit/s."""
        return usable(self.bandwidth, self.measured)


class MediumRecord(Message):
    """A wire that several links share, with a capacity of its own in bit/s."""

    name: str
    bandwidth: Annotated[Count, Field(gt=0)]


class Topology(Message):
    """All links and media. ``version``: of the database, when they last changed."""

    version: Count = 0
    links: list[LinkRecord] = []
    media: list[MediumRecord] = []


def kinds_on_media(links: Iterable[LinkRecord]) -> dict[str, set[LinkKind]]:
    """Medium -> the kinds of links that share it."""
    kinds: dict[str, set[LinkKind]] = {}
    for link in links:
        if link.medium is not None:
            kinds.setdefault(link.medium, set()).add(link.kind)
    return kinds


class AllocationRecord(Message):
    """One task committed to one node. ``incarnation`` counts its starts; a worker is known by both together. Where
    its CPU was chosen, ``cpu`` says how many millicores it holds, and ``cpu_desired`` how many its worker is
    to have, since version ``cpu_since``. ``cards``: ids of those that it holds on its node;
    ``gpu_share``: where it has a part of one, thousandths of that, with ``gpu_memory`` bytes."""

    id: str
    task: str
    rank: Small
    node: str
    address: str
    port: Port
    incarnation: Small = 1
    state: AllocationState = AllocationState.PENDING
    exit_code: ExitCode | None = None
    reason: str | None = None
    stopping_since: Count | None = None  # version at which it ceased to be desired
    cpu: Count | None = None
    cpu_desired: Count | None = None
    cpu_since: Count | None = None
    cards: list[str] = []
    gpu_share: Small = 0
    gpu_memory: Count = 0

    @property
    def over(self) -> bool:
        return self.state in ALLOCATION_OVER

    @property
    def cpu_pending(self) -> bool:
        """Whether it holds what its worker is to have no longer, until that has surely given it up."""
        return self.cpu is not None and self.cpu_desired is not None and self.cpu > self.cpu_desired


Rate = Annotated[Count, Field(validation_alias=AliasChoices("rate", "bandwidth"))]
"""A flow's rate in bit/s. Stored plans and events of former versions call it ``bandwidth``."""


class FlowRecord(Message):
    """A flow with its rate in bit/s. ``number``: unique among live flows. ``path``: node names from source to
    destination; a single one where both tasks share a node."""

    number: Small
    src: str
    dst: str
    min: Count
    max: Count
    rate: Rate
    path: list[str]


class Resizing(Message):
    """What is held for the size that a job goes to, beside what it still has. None of it runs yet."""

    size: Small
    tasks: list[Task] = []
    allocations: list[AllocationRecord] = []
    reserved: list[FlowRecord] = []


class Moving(Message):
    """The move of a task that is under way. ``beside``: what is held beside the task's present allocation: at the
    destination until that is the present one, then at the source, for as long as the task may return. ``reserved``: the
    task's flows, as they would be there."""

    move: str
    state: MoveState
    task: str
    beside: AllocationRecord | None = None
    reserved: list[FlowRecord] = []

    @property
    def coming(self) -> bool:
        """Whether the network of the destination is to be laid beside that of the job."""
        return self.state in (MoveState.RESERVED, MoveState.STOPPING)


class JobRecord(Message):
    """``expected_s``: for how long the job says it runs, in seconds. ``started_at``: since when the present attempt
    holds what it has, that is, when its plan was committed; None where it holds nothing. ``ran_s``: for how long a
    suspended job had that before; None of any other. ``size``, ``spec``: of a malleable job, the replicas of its
    elastic group now, and its file, from which its tasks and flows at every size follow; ``since`` when it is in its
    state, and ``resize_s``, the seconds from running to running that its last resize took. ``resizing``: until nothing
    of the former size is left. ``moving``: of one of its tasks. ``checkpoint_node``: where its first task writes
    checkpoints, or last did; ``checkpoints``: where else some lie. ``speeds``: what was measured of it, told again when
    it has changed by a twentieth. ``deadline``: as its file gives it, ``deadline_at`` the time that follows;
    ``admitted``: a scheduler has promised to keep it. ``traceparent``: where its attempt is traced, the context of its
    last step. ``part``: of a job that is split over regions, what of it is here; its tasks and flows are that part's.
    ``users``, ``requests``, ``objective``, ``adjust``: of an application, as its file has them."""

    id: str
    name: str
    priority: Small
    tenant: str = DEFAULT_TENANT
    expected_s: Number | None = None
    deadline: JobDeadline | None = None
    deadline_at: datetime | None = None
    admitted: bool = False
    preemption: Preemption = "stop"
    state: JobState
    attempt: Small = 1  # counts plans: a rescheduled job gets a new one
    restarts: Small = 0
    reason: str | None = None
    disconnect: Disconnect = STOP  # left out by none but a manager that waits no longer than lease and margin
    restart: Restart = Restart()
    tasks: list[Task] = []
    flows: list[Flow] = []
    size: Small | None = None
    spec: JobFile | None = None
    allocations: list[AllocationRecord] = []
    reserved: list[FlowRecord] = []
    resizing: Resizing | None = None
    moving: Moving | None = None
    since: datetime | None = None
    resize_s: Number | None = None
    checkpoint_node: str | None = None
    checkpoints: JobCheckpoints = JobCheckpoints()
    speeds: JobSpeeds | None = None
    submitted_at: datetime
    started_at: datetime | None = None
    ran_s: Number | None = None
    traceparent: str | None = None
    part: Part | None = None
    users: list[User] = []
    requests: list[Request] = []
    objective: Objective | None = None
    adjust: SelfAdjustment | None = None
    version: Count = 0

    @property
    def key(self) -> str:
        """Names this attempt at running the job, across messages."""
        return f"{self.id}.{self.attempt}"

    @property
    def moving_key(self) -> str:
        """Names what is laid for a task that is to move, across messages."""
        return f"{self.key}.{'' if self.moving is None else self.moving.move}"

    @property
    def released(self) -> bool:
        """Whether nothing of it holds capacity any more."""
        return all(allocation.over for allocation in self.allocations)


class SnapshotQuery(Message):
    """Ask the manager for what changed after ``since`` in database ``epoch``; 0 asks for everything. ``removals``:
    whether the asker understands removals; services of former releases do not, and are told everything after one."""

    since: Count = 0
    epoch: Id = ""
    removals: bool = False


class Snapshot(Message):
    """All records (``full``), or the ones that changed after the version asked for, and the names and ids of those that
    were removed since: these come first. ``epoch`` names the database: a reader that knows another one starts from
    nothing."""

    epoch: str
    version: Count
    full: bool
    nodes: list[NodeRecord] = []
    topology: Topology | None = None
    jobs: list[JobRecord] = []
    removed_nodes: list[str] = []
    removed_jobs: list[str] = []
