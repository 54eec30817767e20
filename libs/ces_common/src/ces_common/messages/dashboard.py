"""What the REST API tells the dashboard beside what every client asks for."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ces_common.fields import Document, NodeName
from ces_common.messages.api import FlowShortfall
from ces_common.messages.base import Message

MAX_POSITIONS = 16384  # of one request
FARTHEST = 1e6
Coordinate = Annotated[float, Field(ge=-FARTHEST, le=FARTHEST, allow_inf_nan=False)]


class HeldFlow(Message):
    """A flow that reserves bandwidth: asked (``min``, ``max``), given (``rate``, on ``path``) and carried
    (``measured``, by its first node's last report), in bit/s. ``name``: of its job; ``shortfall``: a link that does not
    carry what was given."""

    job: str
    name: str
    tenant: str
    src: str
    dst: str
    min: int
    max: int
    rate: int
    path: list[str]
    number: int
    measured: float | None = None
    enforced: bool = False
    shortfall: FlowShortfall | None = None


class Layout(Document):
    """Where nodes lie on the map of the cluster, in units of the map."""

    positions: Annotated[dict[NodeName, tuple[Coordinate, Coordinate]], Field(max_length=MAX_POSITIONS)] = {}
