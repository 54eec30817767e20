"""The tables. Times are UTC; CPU in millicores, memory in bytes, bandwidth in bit/s."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    false,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from ces_common.db.types import Json, State, UtcTime
from ces_common.jobfile import DEFAULT_TENANT, Flow, JobFile, Restart, Task
from ces_common.messages.cards import Card
from ces_common.messages.checkpoints import JobCheckpoints
from ces_common.messages.confinement import Confinement
from ces_common.messages.events import QueueStatus, Reason
from ces_common.messages.owner_calendar import OwnerCalendar
from ces_common.messages.pieces import Part
from ces_common.messages.plans import FlowPlan
from ces_common.messages.profiles import NodeProfile
from ces_common.messages.scores import Measured
from ces_common.messages.speeds import JobSpeeds
from ces_common.states import ALLOCATION_OVER, AllocationState, JobState

LIVE_STATES = tuple(state for state in AllocationState if state not in ALLOCATION_OVER)
EXPANDED = "expanded"
NODE, JOB = "node", "job"  # kinds of removals
ID = String(26)  # a ULID


class Base(DeclarativeBase):
    # Named by rule, so that a migration can name a constraint on either database.
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class ClusterRow(Base):
    """The one row that every writer locks first. ``version`` counts changing transactions, ``sequence`` events. Readers
    that know less than ``horizon`` are told everything: rows that they know of are gone, and no RemovalRow says so any
    more. ``timeline``: of Postgres, on which ``epoch`` goes on."""

    __tablename__ = "cluster"
    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    epoch: Mapped[str] = mapped_column(String(36))
    timeline: Mapped[int | None] = mapped_column(Integer)
    version: Mapped[int] = mapped_column(BigInteger, default=0)
    sequence: Mapped[int] = mapped_column(BigInteger, default=0)
    topology_version: Mapped[int] = mapped_column(BigInteger, default=0)
    horizon: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    last_flow: Mapped[int] = mapped_column(Integer, default=0)  # flow numbers go round
    last_port: Mapped[int] = mapped_column(Integer, default=0)  # so do ports on host addresses
    last_subnet: Mapped[int] = mapped_column(Integer, default=0, server_default="0")  # and nodes' subnets


class NodeRow(Base):
    """``reclaimed``: its owner has the device back, by its agent's word; ``calendar``: when that one usually needs it.
    ``least_generation``: the version at which the node joined, with its present key, or was last given up as lost. What
    it was to run before may run elsewhere, or is over. ``region``: another one, whose gateway the node stands for."""

    __tablename__ = "nodes"
    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    cpu: Mapped[int] = mapped_column(BigInteger)
    memory: Mapped[int] = mapped_column(BigInteger)
    gpu: Mapped[int] = mapped_column(Integer)
    cards: Mapped[list[Card]] = mapped_column(Json(list[Card]), default=list, server_default="[]")
    arch: Mapped[str] = mapped_column(String(32))
    labels: Mapped[dict[str, str]] = mapped_column(Json(dict[str, str]))
    runtime: Mapped[str] = mapped_column(String(16))
    network: Mapped[str] = mapped_column(String(16))
    host_address: Mapped[str] = mapped_column(String(64))
    subnet: Mapped[str] = mapped_column(String(18), unique=True)
    last_host: Mapped[int] = mapped_column(Integer, default=0)  # addresses in the subnet go round
    public_key: Mapped[str] = mapped_column(String(56))
    cordoned: Mapped[bool] = mapped_column(Boolean, default=False)
    reclaimed: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    calendar: Mapped[OwnerCalendar | None] = mapped_column(Json(OwnerCalendar))
    state: Mapped[str] = mapped_column(String(16))
    datasets: Mapped[list[str]] = mapped_column(Json(list[str]), default=list, server_default="[]")
    region: Mapped[str | None] = mapped_column(String(16))
    data_port: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    confinement: Mapped[Confinement | None] = mapped_column(Json(Confinement))
    measured: Mapped[Measured | None] = mapped_column(Json(Measured))
    profile: Mapped[NodeProfile | None] = mapped_column(Json(NodeProfile))
    link_keys: Mapped[list[str]] = mapped_column(Json(list[str]), default=list, server_default="[]")
    link_port: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    joined_at: Mapped[datetime] = mapped_column(UtcTime)
    least_generation: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    version: Mapped[int] = mapped_column(BigInteger, index=True)


class LeaseRow(Base):
    """What was last heard of a node. Apart from ``nodes``: renewed in bulk, without the version lock. ``beats`` counts
    heartbeats: by it each manager tells, on its own clock, for how long nothing was heard. ``heard_at`` is for people.
    ``machine``: the boot of the machine that holds the lease; empty where its agent does not say.
    """

    __tablename__ = "node_leases"
    node: Mapped[str] = mapped_column(ForeignKey("nodes.name", ondelete="CASCADE"), primary_key=True)
    boot: Mapped[str] = mapped_column(String(64))
    machine: Mapped[str] = mapped_column(String(64), server_default="")
    heard_at: Mapped[datetime] = mapped_column(UtcTime)
    beats: Mapped[int] = mapped_column(BigInteger, server_default="0")


class MediumRow(Base):
    __tablename__ = "media"
    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    bandwidth: Mapped[int] = mapped_column(BigInteger)


class LinkRow(Base):
    """A directed link. Its ends need not have joined yet: a topology may be drawn up before. ``delay``: one way, in
    microseconds, as configured. ``state``: as its source says, up until it has said so. ``measured``: capacity found by
    the last active probe, with the round-trip time."""

    __tablename__ = "links"
    src: Mapped[str] = mapped_column(String(63), primary_key=True)
    dst: Mapped[str] = mapped_column(String(63), primary_key=True)
    bandwidth: Mapped[int] = mapped_column(BigInteger)
    kind: Mapped[str] = mapped_column(String(16))
    medium: Mapped[str | None] = mapped_column(ForeignKey("media.name"), index=True)
    delay: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    state: Mapped[str] = mapped_column(String(8), default="up", server_default="up")
    state_since: Mapped[datetime | None] = mapped_column(UtcTime)
    state_reason: Mapped[str | None] = mapped_column(Text)
    measured: Mapped[int | None] = mapped_column(BigInteger)
    measured_at: Mapped[datetime | None] = mapped_column(UtcTime)
    round_trip_us: Mapped[int | None] = mapped_column(BigInteger)


class PositionRow(Base):
    """Where a node lies on the map, as somebody has put it."""

    __tablename__ = "positions"
    node: Mapped[str] = mapped_column(String(63), primary_key=True)
    x: Mapped[float] = mapped_column(Float)
    y: Mapped[float] = mapped_column(Float)


class JobRow(Base):
    """``live``: not over, or over with something of it still holding capacity. ``expected_s``: for how long it says it
    runs. ``placed_at``: when the plan was committed by which it holds something; ``started_at``: when it first ran.
    ``room_made``: the version at which others were last told to make room for it; 0 if they never were. ``victims``:
    these others, each with its attempt at that time. ``size``: of a malleable job, the replicas of its elastic group in
    ``tasks`` and ``flows``; ``next_size`` and ``resize``, the proposal: while rows of the next attempt hold what the
    job needs at another size, until nothing of the present attempt is left. ``resizing_at``: when it last left its
    size; ``resize_s``: seconds until it ran at another one, the last time. ``move``: of a task, which is under way;
    ``adjusts``: CES may change it by itself.
    ``checkpoint_node``: where the first task of a malleable job was last, or is to be; ``checkpoints``: where else some
    lie; ``speeds``: how far and how fast it was. ``deadline_at``: by when it is to have ended; ``admitted_at``: when
    that was promised; ``expected_end_at``: when it will have, as a scheduler said last; ``miss_told``: that it will be
    late. ``traceparent``: where the present attempt is traced, the context of its last step. ``region``: another one,
    in which it runs or ran. ``part``: of a job that is split over regions, what of it is here."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index("ix_jobs_live_id", "live", "id"),
        Index("ix_jobs_state_id", "state", "id"),
        Index("ix_jobs_tenant_state", "tenant", "state"),
    )
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    name: Mapped[str] = mapped_column(String(63))
    priority: Mapped[int] = mapped_column(Integer)
    tenant: Mapped[str] = mapped_column(String(63), default=DEFAULT_TENANT, server_default=DEFAULT_TENANT)
    expected_s: Mapped[int | None] = mapped_column(BigInteger)
    preemption: Mapped[str] = mapped_column(String(8), default="stop", server_default="stop")
    spec: Mapped[JobFile] = mapped_column(Json(JobFile), deferred=True)  # as submitted; what follows is its meaning
    restart: Mapped[Restart] = mapped_column(Json(Restart))
    disconnect: Mapped[str] = mapped_column(String(8))  # always said, so a job keeps what it was submitted with
    # Long in large jobs and not needed to move one on: read only where asked for.
    tasks: Mapped[list[Task]] = mapped_column(Json(list[Task]), deferred=True, deferred_group=EXPANDED)
    flows: Mapped[list[Flow]] = mapped_column(Json(list[Flow]), deferred=True, deferred_group=EXPANDED)
    state: Mapped[JobState] = mapped_column(State(JobState))
    state_since: Mapped[datetime] = mapped_column(UtcTime)
    late: Mapped[int] = mapped_column(Integer, default=0)  # deadlines missed in a row
    live: Mapped[bool] = mapped_column(Boolean, default=True)
    reason: Mapped[str | None] = mapped_column(Text)
    waiting: Mapped[Reason | None] = mapped_column(Json(Reason))
    queue_status: Mapped[QueueStatus | None] = mapped_column(Json(QueueStatus), deferred=True)
    attempt: Mapped[int] = mapped_column(Integer, default=1)
    restarts: Mapped[int] = mapped_column(Integer, default=0)
    room_made: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    victims: Mapped[dict[str, int]] = mapped_column(Json(dict[str, int]), default=dict, server_default="{}")
    submitted_at: Mapped[datetime] = mapped_column(UtcTime)
    placed_at: Mapped[datetime | None] = mapped_column(UtcTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcTime, index=True)
    size: Mapped[int | None] = mapped_column(Integer)
    next_size: Mapped[int | None] = mapped_column(Integer)
    resize: Mapped[str | None] = mapped_column(ID)
    resizing_at: Mapped[datetime | None] = mapped_column(UtcTime)
    move: Mapped[str | None] = mapped_column(ID)
    adjusts: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    resize_s: Mapped[float | None] = mapped_column(Float)
    checkpoint_node: Mapped[str | None] = mapped_column(String(63))
    checkpoints: Mapped[JobCheckpoints] = mapped_column(
        Json(JobCheckpoints), default=JobCheckpoints, server_default="{}"
    )
    speeds: Mapped[JobSpeeds | None] = mapped_column(Json(JobSpeeds), deferred=True, deferred_group=EXPANDED)
    deadline_at: Mapped[datetime | None] = mapped_column(UtcTime)
    admitted_at: Mapped[datetime | None] = mapped_column(UtcTime)
    expected_end_at: Mapped[datetime | None] = mapped_column(UtcTime)
    miss_told: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    traceparent: Mapped[str | None] = mapped_column(String(55))
    region: Mapped[str | None] = mapped_column(String(16))
    part: Mapped[Part | None] = mapped_column(Json(Part))
    idempotency_key: Mapped[str | None] = mapped_column(String(255), unique=True)
    body_hash: Mapped[str] = mapped_column(String(64))
    version: Mapped[int] = mapped_column(BigInteger, index=True)


class AllocationRow(Base):
    """One task on one node in one attempt; past attempts stay as history, also of nodes that were forgotten. ``cpu``:
    what it holds, 0 while the job is suspended. ``cpu_desired``: what its worker is to have since version
    ``cpu_since``; None: what its task asks for. ``being_started``: its agent says that it has been at it for a while;
    ``waits``: for what. ``reason``: why it ended, or, where it starts again, why it did before. ``cards``: ids of those
    that are its, by which alone they are told apart; ``gpu``, the number, leaves out what the present attempt of a job
    that goes to another size has anyway."""

    __tablename__ = "allocations"
    __table_args__ = (
        Index("ix_allocations_state_node", "state", "node"),
        Index("ix_allocations_job_attempt", "job", "attempt"),
    )
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    attempt: Mapped[int] = mapped_column(Integer)
    task: Mapped[str] = mapped_column(String(80))
    rank: Mapped[int] = mapped_column(Integer)
    node: Mapped[str] = mapped_column(String(63))
    address: Mapped[str] = mapped_column(String(64))
    port: Mapped[int] = mapped_column(Integer)
    cpu: Mapped[int] = mapped_column(BigInteger)
    memory: Mapped[int] = mapped_column(BigInteger)
    gpu: Mapped[int] = mapped_column(Integer)
    cards: Mapped[list[str]] = mapped_column(Json(list[str]), default=list, server_default="[]")
    gpu_share: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    gpu_memory: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    incarnation: Mapped[int] = mapped_column(Integer, default=1)
    being_started: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    waits: Mapped[str | None] = mapped_column(Text)
    state: Mapped[AllocationState] = mapped_column(State(AllocationState))
    exit_code: Mapped[int | None] = mapped_column(Integer)
    reason: Mapped[str | None] = mapped_column(Text)
    stopping_since: Mapped[int | None] = mapped_column(BigInteger)
    cpu_desired: Mapped[int | None] = mapped_column(BigInteger)
    cpu_since: Mapped[int | None] = mapped_column(BigInteger)


class ReservationRow(Base):
    """What a flow was given in one attempt. ``held``: it still counts; then its ``number`` is its own."""

    __tablename__ = "reservations"
    __table_args__ = (
        Index(
            "uq_reservations_number",
            "number",
            unique=True,
            postgresql_where=text("held"),
            sqlite_where=text("held = 1"),  # spelt as queries are, or SQLite does not recognise it
        ),
    )
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    attempt: Mapped[int] = mapped_column(Integer, primary_key=True)
    src: Mapped[str] = mapped_column(String(80), primary_key=True)
    dst: Mapped[str] = mapped_column(String(80), primary_key=True)
    number: Mapped[int] = mapped_column(Integer)
    min: Mapped[int] = mapped_column(BigInteger)
    max: Mapped[int] = mapped_column(BigInteger)
    rate: Mapped[int] = mapped_column(BigInteger)
    path: Mapped[list[str]] = mapped_column(Json(list[str]))
    held: Mapped[bool] = mapped_column(Boolean, default=True)


class HopRow(Base):
    """A held flow on one link of its path; gone as soon as the flow is released."""

    __tablename__ = "hops"
    __table_args__ = (Index("ix_hops_link", "src", "dst"),)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    src: Mapped[str] = mapped_column(String(63), primary_key=True)
    dst: Mapped[str] = mapped_column(String(63), primary_key=True)
    rate: Mapped[int] = mapped_column(BigInteger)


class PlanRow(Base):
    """A committed plan, with what the scheduler considered."""

    __tablename__ = "plans"
    __table_args__ = (Index("ix_plans_job_attempt", "job", "attempt"),)
    id: Mapped[str] = mapped_column(String(128), primary_key=True)
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    attempt: Mapped[int] = mapped_column(Integer)
    solver: Mapped[str] = mapped_column(String(128))
    version: Mapped[int] = mapped_column(BigInteger)
    committed_at: Mapped[datetime] = mapped_column(UtcTime)
    metrics: Mapped[dict[str, float]] = mapped_column(Json(dict[str, float]))
    considered: Mapped[dict[str, Any]] = mapped_column(Json(dict[str, Any]))
    assignments: Mapped[dict[str, str]] = mapped_column(Json(dict[str, str]))
    flows: Mapped[list[FlowPlan]] = mapped_column(Json(list[FlowPlan]))


class EventRow(Base):
    """Outbox and event history in one: ``body`` is the CloudEvent as it goes out."""

    __tablename__ = "events"
    __table_args__ = (
        Index("ix_events_published_sequence", "published", "sequence"),
        Index("ix_events_job_sequence", "job", "sequence"),
    )
    sequence: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[str] = mapped_column(ID)
    type: Mapped[str] = mapped_column(String(64))
    bus_subject: Mapped[str] = mapped_column(String(300))
    job: Mapped[str | None] = mapped_column(ID)  # the job it is about; no foreign key: it may outlive it
    time: Mapped[datetime] = mapped_column(UtcTime, index=True)
    body: Mapped[str] = mapped_column(Text)
    published: Mapped[bool] = mapped_column(Boolean, default=False)


class InboxRow(Base):
    """Ids of the messages whose effect is in the database."""

    __tablename__ = "inbox"
    id: Mapped[str] = mapped_column(String(128), primary_key=True)
    consumed_at: Mapped[datetime] = mapped_column(UtcTime, index=True)


class SecretRow(Base):
    """A secret of a tenant. ``sealed``: encrypted, and bound to tenant and name; the keys are not in the database.
    Events know it by its ``id``."""

    __tablename__ = "secrets"
    tenant: Mapped[str] = mapped_column(String(63), primary_key=True)
    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    id: Mapped[str] = mapped_column(ID, unique=True)
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    updated_at: Mapped[datetime] = mapped_column(UtcTime)
    updated_by: Mapped[str] = mapped_column(String(128))


class RevokedKeyRow(Base):
    """The public key of a node that was forgotten, or of the device in whose place another has joined: no credential
    for it is good any more, and it is never admitted again."""

    __tablename__ = "revoked_keys"
    public_key: Mapped[str] = mapped_column(String(56), primary_key=True)
    node: Mapped[str] = mapped_column(String(63))
    revoked_at: Mapped[datetime] = mapped_column(UtcTime)


class RemovalRow(Base):
    """A node or job that was removed: those who read the state at an earlier ``version`` may still know it. Kept for as
    long as readers are told what changed, and moved into ``ClusterRow.horizon`` then."""

    __tablename__ = "removals"
    kind: Mapped[str] = mapped_column(String(8), primary_key=True)
    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    version: Mapped[int] = mapped_column(BigInteger, index=True)
    removed_at: Mapped[datetime] = mapped_column(UtcTime, index=True)


class DutyRow(Base):
    """What one manager at a time does for all. ``holder``: where that manager is (host and port), ``process``: which
    start of it; empty where nobody has it. ``renewed`` grows while it is held: by it the others tell, each on its own
    clock, for how long the holder has given no sign."""

    __tablename__ = "duties"
    name: Mapped[str] = mapped_column(String(16), primary_key=True)
    holder: Mapped[str] = mapped_column(String(300))
    process: Mapped[str] = mapped_column(String(32))
    renewed: Mapped[int] = mapped_column(BigInteger)
