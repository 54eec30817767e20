"""What keeps the workers of a node apart from each other and from its host, as its agent has it."""

from __future__ import annotations

from typing import Final, Literal

from ces_common.messages.base import Message
from ces_common.messages.bounds import Node

REMEDY: Final = "run agents as root, or with the docker runtime (CES_RUNTIME=docker, ces up --runtime docker)"
"""Against workers that share a user."""


class Confinement(Message):
    """Of every worker that the node starts. ``user``: whether each has a user, or a container, of its own, or all share
    the agent's user. ``filter``: whether system calls are kept from them. ``root``: whether they can write outside of
    their own folders. ``disk``: whether the kernel ``limits`` what they keep there, the agent ``measures`` it and ends
    who has more than is allowed, or nothing bounds it."""

    user: Literal["own", "shared"]
    filter: bool
    root: Literal["read-only", "writable"]
    disk: Literal["limited", "measured", "unbounded"]

    @property
    def keeps_secrets(self) -> bool:
        """Whether no other worker of the node can read a worker's files."""
        return self.user == "own"


class ConfinementReport(Message):
    """How a node's workers are confined, said when its agent starts and repeated."""

    node: Node
    confinement: Confinement


def keeps_secrets(told: Confinement | None) -> bool:
    """Whether secrets may be given to workers of a node that has told this; None: it has told nothing yet."""
    return told is not None and told.keeps_secrets


def why_no_secrets(told: Confinement | None) -> str:
    """Why they may not, as said behind the node's name, and what would help."""
    if told is None:
        return "has not told yet how its workers are kept apart"
    return f"gives no worker a user of its own: {REMEDY}"
