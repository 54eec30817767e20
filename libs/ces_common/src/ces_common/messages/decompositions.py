"""An application's graph to be divided, and what it was divided into, as the dashboard previews it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ces_common.graphfile import MAX_VERTICES, ApplicationGraph
from ces_common.messages.base import Message
from ces_common.messages.bounds import Amount, Id, Remark, Small

MOST_PREVIEWED, MOST_EDGES_PREVIEWED = 200, 1000
"""Vertices and edges; `ces decompose` takes more, on the machine of whoever asks."""
MOST_PARTS = 64
Way = Literal["clusters", "optimal", "compute", "mobile"]
Granularity = Literal["fine", "medium", "coarse"]


class DecompositionQuery(Message):
    """Ask the scheduler to divide a graph. ``parts``: into how many; None: as ``granularity`` says."""

    graph: ApplicationGraph
    by: Way = "clusters"
    parts: Annotated[int, Field(ge=1, le=MOST_PARTS)] | None = None
    granularity: Granularity = "medium"


class DividedLevel(Message):
    """One way of dividing the graph. ``cut``: traffic between its parts, bit/s, and ``share`` of all traffic;
    ``spread``: half the width of its 95 % interval, where it is a mean. ``gap``: how far from the least, None where
    nobody knows. ``cpu``, ``memory``: of its largest part, None where it makes none. ``note``: what is wrong with it,
    or why it is missing."""

    name: Id
    parts: Small
    chosen: bool = False
    cut: Amount | None = None
    spread: Amount = 0.0
    share: Amount | None = None
    gap: Amount | None = None
    cpu: Amount | None = None
    memory: Amount | None = None
    note: Remark | None = None


class DividedPart(Message):
    """A task that some vertices become: millicores, bytes and cards."""

    task: Id
    cpu: Amount
    memory: Amount
    gpu: Small = 0
    arch: Id | None = None
    vertices: Annotated[list[str], Field(max_length=MAX_VERTICES)]


class PartTraffic(Message):
    """From one part to another, bit/s."""

    src: Id
    dst: Id
    min: Amount
    max: Amount


class DecompositionAnswer(Message):
    """``refusal``: why the graph is not divided, and ``field``: which wish is to be changed; ``busy``: it may be asked
    again. ``note``: how the parts differ from what was asked for. ``levels``: at several
    numbers of parts, one of which was ``chosen``; ``others``: not divided, and at random. ``job``: the file of the job
    that the parts make; None where the graph does not say what a part runs, or ``remark`` why none can be made."""

    refusal: Remark | None = None
    field: Id | None = None
    busy: bool = False
    note: Remark | None = None
    levels: Annotated[list[DividedLevel], Field(max_length=MOST_PARTS)] = []
    others: Annotated[list[DividedLevel], Field(max_length=MOST_PARTS)] = []
    parts: Annotated[list[DividedPart], Field(max_length=MOST_PARTS)] = []
    traffic: Annotated[list[PartTraffic], Field(max_length=MOST_PARTS**2)] = []
    job: dict[str, Any] | None = None
    remark: Remark | None = None
