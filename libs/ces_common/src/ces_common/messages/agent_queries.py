"""What agents are asked and what they ask, with the answers: credentials, logs, wires."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ces_common.messages.base import Message
from ces_common.messages.bounds import Amount, Count, Id, Node, PublicKey, Small

MAX_LOG = 2**20  # bytes of one answer


class CredentialQuery(Message):
    """A node asks for a credential that ends later. ``public_key``: its own."""

    public_key: PublicKey


class Credential(Message):
    """A node's NATS credential: a JWT for its own key."""

    node: Node
    jwt: str


class LogQuery(Message):
    """Ask an agent for a worker's log from a byte offset on, or from the start of its last ``tail`` lines."""

    allocation: Id
    offset: Count = 0
    tail: Small | None = None
    limit: int = Field(default=256 * 1024, ge=1, le=MAX_LOG)


class LogAnswer(Message):
    found: bool
    offset: Count = 0  # where the next query goes on
    text: Annotated[str, Field(max_length=2 * MAX_LOG)] = ""  # with a remark where something was dropped
    complete: bool = False  # the worker has ended and all of its log was read


class LinkProbe(Message):
    """Ask an agent to measure the wire to a neighbour: to send as much as the link's shaping lets through, or to count
    what comes over it."""

    peer: Node
    part: Literal["send", "receive"]
    seconds: float = Field(ge=0.1, le=10)


class LinkProbed(Message):
    """``rate``: the highest in bit/s over half of the time or more, of all that the link carried, in Ethernet frames.
    ``round_trip_s``: median of the last echoes from before."""

    rate: Amount
    round_trip_s: Amount | None = None
