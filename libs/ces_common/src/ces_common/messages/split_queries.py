"""What a region's scheduler is asked where a job may be split over regions: a small problem, with regions as nodes and
border links as links."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ces_common.fields import RegionName
from ces_common.jobfile import JobFile
from ces_common.messages.base import Message
from ces_common.messages.bounds import Count, Number, Remark
from ces_common.messages.plans import FlowPlan
from ces_common.messages.regions import Room
from ces_common.messages.split import MAX_PARTS


class RegionRoom(Message):
    """A region as one node of the split problem. ``largest``: see Totals."""

    name: RegionName
    free: Room
    largest: Room


class BorderRoom(Message):
    """A directed border link with what is free on it, in bit/s."""

    src: RegionName
    dst: RegionName
    free: Count


class SplitQuery(Message):
    """Over which of these regions a job could be split."""

    job: JobFile
    regions: Annotated[list[RegionRoom], Field(min_length=2, max_length=MAX_PARTS)]
    borders: Annotated[list[BorderRoom], Field(max_length=MAX_PARTS * MAX_PARTS)]


class SplitAnswer(Message):
    """``regions``: task -> region; empty where it cannot be split so, and ``refusal`` says why. ``flows``: paths are
    regions."""

    regions: dict[str, RegionName] = {}
    flows: list[FlowPlan] = []
    composite: Number = 0.0
    refusal: Remark | None = None
