"""Versions of the policy that decides, where it evolves, as the scheduler tells them to whoever looks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from ces_common.messages.base import Message
from ces_common.messages.bounds import Amount, Id, Number, Remark, Small

MOST_VERSIONS, MOST_CHANGES = 50, 50
"""The newest are told."""
PolicyRole = Literal["live", "shadow", "candidate", "passed over", "taken back"]


class PolicyGain(Message):
    """What one policy gains over another on the same ``decisions``, in the objective: the mean, and an interval of 95 %
    that is valid at all times at once. Gains are cut off at 0.1 either way, as which a job counts that only one places.
    ``refused``: jobs for which only the other found a place; ``slower``: CPU time of its slowest decision in a hundred,
    over the other's."""

    decisions: Small
    mean: Number
    low: Number
    high: Number
    refused: Small
    slower: Amount


class PolicyVersion(Message):
    """``decisions`` and ``synthetic``: on how many logged and drawn problems it has learned, logged ones up to
    ``learned_until``. ``gain``: of a candidate over the live version, of the live one over the former one; None where
    nothing was compared. ``against``: all that speaks against its promotion now."""

    name: Id
    policy: Id
    role: PolicyRole
    made_at: datetime
    learned_until: datetime
    decisions: Small
    synthetic: Small
    gain: PolicyGain | None = None
    against: Annotated[list[Remark], Field(max_length=10)] = []


class PolicyChange(Message):
    """What happened to a version, and why."""

    at: datetime
    what: Id
    version: Id
    why: Remark


class PolicyQuery(Message):
    """Ask the scheduler which versions of its policy there are."""


class PolicyAnswer(Message):
    """``evolves``: whether the scheduler has a folder of versions at all. ``live`` decides; ``former`` comes back if it
    is worse. ``solver``: the one that asks the policy. Versions and changes, the newest first. ``remark``: why nothing
    of that can be told now."""

    evolves: bool = False
    live: Id | None = None
    former: Id | None = None
    frozen: bool = False
    promoted_at: datetime | None = None
    solver: Id | None = None
    versions: Annotated[list[PolicyVersion], Field(max_length=MOST_VERSIONS)] = []
    changes: Annotated[list[PolicyChange], Field(max_length=MOST_CHANGES)] = []
    remark: Remark | None = None
