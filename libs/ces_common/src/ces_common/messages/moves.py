"""The move of one task of a running job to another node: what is asked for, what is committed, and what becomes of
it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from ces_common.fields import Document
from ces_common.messages.base import Message
from ces_common.messages.bounds import Count, Id, Node, Small
from ces_common.messages.plans import FlowPlan
from ces_common.messages.records import AllocationRecord, FlowRecord
from ces_common.task_move import MoveKind, MoveState


class MoveRequest(Document):
    """``POST /v1/jobs/{job}/moves``: ``task``, by its full name, is to run on node ``to``."""

    task: Annotated[str, Field(min_length=1, max_length=80)]
    to: Node


class MoveView(Message):
    """The move of a task. ``state``: a line of the table in docs/running-applications.md; ``why``: CES made it by
    itself, None where somebody asked for it; ``requests``: that fell into such a one, which makes up for them at
    ``pays_at``, unless it was ``in_vain``; ``reason``: why it came to nothing."""

    id: str
    task: str
    kind: MoveKind
    state: MoveState
    source: str
    destination: str
    began_at: datetime
    changed_at: datetime
    why: str | None = None
    requests: float | None = None
    pays_at: datetime | None = None
    in_vain: bool = False
    reason: str | None = None


class MoveQuery(Message):
    """Ask the scheduler for paths and rates of a task's flows, beside those that they have, if it ran on another
    node."""

    job: Id
    task: Id
    node: Node


class MoveAnswer(Message):
    """``flows``: those of the task; ``reason``: why there are no paths for them, None where there are."""

    version: Count
    flows: list[FlowPlan] = []
    reason: str | None = None


class MoveCommitted(Message):
    """What the move of a task needs is held from now on, beside what the job has. ``old``: the allocation that the
    task leaves; ``new``: at the destination; ``back``: at the source, where it holds nothing until the old one is
    gone; ``flows``: other paths and rates of the task's flows, as flows of their own; ``why``: see MoveView."""

    move: str
    job: str
    attempt: Small
    task: str
    kind: MoveKind
    source: str
    destination: str
    old: str
    new: AllocationRecord
    back: AllocationRecord
    flows: list[FlowRecord] = []
    why: str | None = None


class MoveChanged(Message):
    """A move went on, or is over. ``allocation``: the task's from now on. With ``starting`` the task's allocation is
    the new one, and its flows have what was held for them, which holds what they had; ``returning`` is the way back.
    Once it is over, nothing is held beside what the job has. ``dropped``: allocations that are held no longer, since
    their node is lost; the state is the same then."""

    move: str
    job: str
    attempt: Small
    task: str
    allocation: str
    previous: MoveState
    state: MoveState
    reason: str | None = None
    dropped: list[str] = []
