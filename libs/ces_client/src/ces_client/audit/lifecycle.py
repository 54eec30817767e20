"""Jobs and allocations as an audit's ``Books`` record them, and the changes of state that are legal. The tables repeat
those of ``ces_common.states`` on purpose: an audit does not rely on the code that it checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ces_client.audit.inventory import NOTHING, Amounts, Hop

Flow = Mapping[str, Any]

RUNS = {"starting", "running", "paused", "suspended"}
PLACED = {"planned", "preparing", "resizing"} | RUNS
OVER = {"succeeded", "failed", "cancelled"}
JOB_STEPS = {
    None: {"queued"},
    "queued": {"planned", "elsewhere", "failed", "cancelled"},
    "planned": {"preparing", "rescheduling", "failed", "cancelled"},
    "preparing": {"starting", "rescheduling", "failed", "cancelled"},
    "starting": {"running", "rescheduling", "failed", "cancelled"},
    "running": {"starting", "resizing", "paused", "suspended", "succeeded", "rescheduling", "failed", "cancelled"},
    "resizing": {"starting", "rescheduling", "failed", "cancelled"},
    "paused": {"running", "rescheduling", "failed", "cancelled"},
    "suspended": {"running", "rescheduling", "failed", "cancelled"},
    "elsewhere": {"queued", "succeeded", "failed", "cancelled"},
    "rescheduling": {"queued", "failed", "cancelled"},
}
ENDED = {"succeeded", "failed", "stopped", "lost"}
ALLOCATION_STEPS = {
    None: {"pending"},
    "pending": {"pending", "running", "stopping"} | ENDED,
    "running": {"pending", "stopping"} | ENDED,
    "stopping": {"stopped", "lost"},
}

MOVE_STEPS = {  # of a task; whatever ends its job's place ends a move as failed
    "reserved": {"stopping", "kept"},
    "stopping": {"carrying"},
    "carrying": {"starting", "returning"},
    "starting": {"done", "clearing"},
    "clearing": {"returning"},
    "returning": {"kept"},
}


@dataclass
class Job:
    """A job as the log tells of it so far."""

    name: str = ""
    state: str | None = None
    attempt: int = 0
    allocations: list[str] = field(default_factory=list)  # of the present attempt
    flows: dict[int, Flow] = field(default_factory=dict)  # held, by number
    live: set[str] = field(default_factory=set)  # allocations of any attempt that hold something
    next: NextSize | None = None  # from the start of a resize until it is done or given up
    move: TaskMove | None = None  # of one of its tasks, until it is over


@dataclass
class TaskMove:
    """A task that moves. ``old``: the allocation that it leaves; ``new``: at its destination; ``back``: where it was,
    for its return; ``flows``: what is held beside those of the job, by number."""

    id: str
    state: str
    old: str
    new: Allocation
    back: Allocation
    flows: dict[int, Flow]


@dataclass
class NextSize:
    """What is held for the size that a job is resized to. ``nodes`` and ``links``: how much more that is than the job
    still holds for its former size, at this point of the log."""

    resize: str
    allocations: list[Allocation]
    flows: dict[int, Flow]
    nodes: dict[str, Amounts] = field(default_factory=dict)
    links: dict[Hop, int] = field(default_factory=dict)


@dataclass
class Allocation:
    """A task on a node. ``since`` and ``until``: when it began and ceased to hold capacity; ``held``: what it holds
    now; ``cpu``: the millicores that its worker is to have, where that was chosen; ``cards``: ids of those that are
    its, None where the log does not tell; ``gpu_share`` and ``gpu_memory``: thousandths and bytes, of a part of one."""

    id: str
    job: str
    task: str
    node: str
    address: str
    port: int
    since: str
    attempt: int
    state: str | None = None
    incarnation: int = 0
    until: str | None = None
    held: Amounts = NOTHING
    cpu: int | None = None
    cards: tuple[str, ...] | None = None
    gpu_share: int = 0
    gpu_memory: int = 0

    @staticmethod
    def made(told: Mapping[str, Any], job: str, attempt: int, since: str) -> Allocation:
        """As a plan or a resize tells of it."""
        same = {name: told[name] for name in ("id", "task", "node", "address", "port")}
        cards = tuple(told["cards"]) if "cards" in told else None
        part = {name: told.get(name, 0) for name in ("gpu_share", "gpu_memory")}
        return Allocation(
            **same, **part, job=job, attempt=attempt, since=since, cpu=told.get("cpu_desired"), cards=cards
        )

    @property
    def live(self) -> bool:
        return self.state not in ENDED
