"""How fast a node is: what its agent measured, and the scores that follow from it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import FailFast, Field

from ces_common.messages.base import Message
from ces_common.messages.bounds import Node

Kind = Literal["integer", "float", "matrix", "inference", "memory", "disk", "network"]
Category = Literal["computing", "core", "memory", "storage", "communication"]
REPEATS: Final = 5
MAX_MEASURED: Final = 32  # measurements of one node
MAX_SOURCE: Final = 200  # characters
Rate = Annotated[float, Field(ge=1e-6, le=1e18, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Source = Annotated[str, Field(max_length=MAX_SOURCE, pattern=r"^[ -~]*$")]
CoreType = Annotated[str, Field(max_length=32, pattern=r"^[A-Za-z0-9 _-]*$")]


class Measurement(Message):
    """What was measured of one kind of work, with so many threads, on one type of core: ``rates`` of each repeat, per
    second. ``cores``: which type; empty where the machine has one, or all take part. ``others``: the share of the
    machine's whole CPU that others used meanwhile; None where that is not known. ``per_cpu_s``: the work done for each
    second of CPU time that it was given, which neither a quota nor others change much; None where an agent does not
    tell. ``source``: what did the work."""

    kind: Kind
    threads: Annotated[int, Field(ge=1, le=4096)] = 1
    cores: CoreType = ""
    rates: Annotated[list[Rate], Field(min_length=2, max_length=REPEATS)]
    others: Share | None = None
    per_cpu_s: Rate | None = None
    source: Source


class ScoreReport(Message):
    """All that was measured of a node. What cannot run there is not among it."""

    node: Node
    measurements: Annotated[list[Measurement], FailFast(), Field(max_length=MAX_MEASURED)]


class Measured(Message):
    """What a node's agent told last, and ``at``: when the manager heard it first."""

    at: datetime
    measurements: list[Measurement]


class RawScore(Message):
    """A measurement as it is shown (CATS level 0). ``rate``: the median of its repeats, in ``unit``; ``spread``: the
    difference between the fastest and the slowest repeat, as a share of the median; ``score``: the rate in rates of
    one thread of the reference core; ``speed``: the same of the work for each second of CPU time; ``noisy``: whether it
    is not to be relied on."""

    kind: Kind
    threads: int
    cores: str
    rate: float
    unit: str
    spread: float
    others: float | None
    noisy: bool
    score: float
    speed: float | None = None
    source: str


class CategoryScore(Message):
    """CATS level 1: the geometric mean of the scores of ``kinds``, which are those that could be measured."""

    category: Category
    score: float
    noisy: bool
    kinds: list[Kind]


class NodeScores(Message):
    """``level``: CATS level 2, 0 to 10; None where nothing was measured that it is made of. ``noisy``: whether what it
    is made of is. ``reference``: the number of the table of rates that scores refer to."""

    at: datetime
    reference: int
    level: float | None
    noisy: bool
    categories: list[CategoryScore]
    raw: list[RawScore]
