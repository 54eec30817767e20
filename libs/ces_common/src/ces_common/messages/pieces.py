"""Pieces of jobs that are split over regions, as each region keeps its own with the job."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Annotated

from pydantic import Field

from ces_common.fields import RegionName
from ces_common.flowfile import MAX_FLOWS
from ces_common.jobfile import MAX_TASKS
from ces_common.messages.base import Message
from ces_common.messages.bounds import Count, Port, Small

TaskName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]


class Crossing(Message):
    """A flow between tasks in two regions, as one of them has it: ``region`` is the other one. ``rate``: bit/s, the
    same in both."""

    src: TaskName
    dst: TaskName
    rate: Annotated[Count, Field(gt=0)]
    region: RegionName


class TaskPlace(Message):
    """Where a task is reached by its peers."""

    task: TaskName
    address: IPv4Address
    port: Port


class Place(TaskPlace):
    """``region``: in which it is."""

    region: RegionName


class Piece(Message):
    """One region's part of a job: some of its tasks, and their flows to tasks of other parts."""

    tasks: Annotated[list[TaskName], Field(min_length=1, max_length=MAX_TASKS)]
    crossings: Annotated[list[Crossing], Field(max_length=MAX_FLOWS)] = []


class Part(Piece):
    """A piece as it is kept with its job where it runs. ``ranks``: of all tasks of the whole job, by name. ``places``:
    of the tasks in other regions; None until the home has committed the part."""

    ranks: dict[str, Small]
    places: list[Place] | None = None
