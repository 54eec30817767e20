"""Checkpoints of malleable jobs that outlive their node: what agents say of them, and where copies lie."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import FailFast, Field, model_validator

from ces_common.messages.base import Message
from ces_common.messages.bounds import MAX_ITEMS, Count, Id, Node, Remark, Small

CHECKPOINT_NAME = r"^[A-Za-z0-9_][A-Za-z0-9._=+@-]{0,127}$"
MAX_HELD = 8  # copies of one job's on one node: more than are kept
COPIES = 2  # checkpoints of a job of which copies are kept; a newer one may be on its way

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256, in hexadecimal."""
CheckpointName = Annotated[str, Field(pattern=CHECKPOINT_NAME)]


class Checkpoint(Message):
    """A complete checkpoint, packed. ``size`` (bytes) and ``digest`` are of the archive. ``attempt``, ``incarnation``:
    of the first task's worker that ran when it was packed."""

    attempt: Small
    incarnation: Small
    name: CheckpointName
    size: Count
    digest: Digest

    @property
    def writer(self) -> tuple[int, int]:
        """What a later writer has more of: nothing replaces a checkpoint whose writer is later than its own."""
        return self.attempt, self.incarnation


class StoredCheckpoint(Checkpoint):
    """A checkpoint that the manager knows of. ``nodes``: those that have said that they hold a copy."""

    nodes: list[str] = []
    at: datetime

    def as_checkpoint(self) -> Checkpoint:
        return Checkpoint(**self.model_dump(include=set(Checkpoint.model_fields)))


class JobCheckpoints(Message):
    """What is known of a job's checkpoints. ``restoring``: the first task goes to another node, and has not begun
    there; ``former``: the node where it was before, if that could be reached. ``stored``: the newest first.
    ``begun``: (attempt, incarnation) of the first task whose beginning elsewhere was announced last."""

    restoring: bool = False
    former: str | None = None
    stored: list[StoredCheckpoint] = []
    begun: tuple[Small, Small] = (0, 0)


class PackedCheckpoint(Message):
    """A checkpoint that the node of its job's first task has packed and holds ready."""

    job: Id
    checkpoint: Checkpoint


class HeldCopies(Message):
    """The checkpoints of one job of which a node holds whole copies."""

    job: Id
    digests: Annotated[list[Digest], Field(max_length=MAX_HELD)] = []


class BegunFrom(Message):
    """From what a job's first task begins on a node where it was not before. ``source``: the node whose copy was
    fetched, with the ``name`` of the checkpoint; None where none could be had, and ``reason`` says why, as it does
    where others were tried first."""

    job: Id
    attempt: Small
    incarnation: Small
    source: Node | None = None
    name: CheckpointName | None = None
    reason: Remark | None = None


class CheckpointReport(Message):
    """All that a node says of checkpoints; repeated like every report."""

    node: Node
    packed: Annotated[list[PackedCheckpoint], FailFast(), Field(max_length=MAX_ITEMS)] = []
    held: Annotated[list[HeldCopies], FailFast(), Field(max_length=MAX_ITEMS)] = []
    begun: Annotated[list[BegunFrom], FailFast(), Field(max_length=MAX_ITEMS)] = []

    @model_validator(mode="after")
    def _each_job_once(self) -> Self:
        for what in (self.packed, self.held, self.begun):
            if len({each.job for each in what}) < len(what):
                raise ValueError("each job may be named once in packed, held and begun")
        return self

    @property
    def says_anything(self) -> bool:
        return bool(self.packed or self.held or self.begun)


class CheckpointStored(Message):
    """Event: a node has packed a checkpoint, or holds a copy of it."""

    job: Id
    node: Node
    attempt: Small
    incarnation: Small
    name: CheckpointName
    size: Count
    digest: Digest


class CheckpointRestored(Message):
    """Event: what the first task begins from on another node; ``name`` is None where it begins with nothing."""

    job: Id
    node: Node
    attempt: Small
    incarnation: Small
    source: Node | None = None
    name: CheckpointName | None = None
    reason: Remark | None = None
