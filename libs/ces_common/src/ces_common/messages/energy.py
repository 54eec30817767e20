"""Energy: what agents tell of it, and what the REST API answers. Agents count in microjoules, so that what is divided
adds up exactly; people read joules and watts."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from ces_common.messages.base import Message
from ces_common.messages.bounds import Amount, Count, Id

Source = Literal["measured", "modelled"]
MAX_METERED: Final = 1024  # allocations of one node: those that run, and the last that ended
MOST_WATTS: Final = 20_000
"""Of one node. Whoever tells of more is not believed."""


class EnergyReport(Message):
    """What a node has used since this start of its agent, in microjoules: ``total``, and of that what was attributed to
    each allocation. All of it only grows, so a heartbeat that is lost costs nothing. ``watts``: the mean since the
    report before; None where that is not known. ``meter``: what measures or models."""

    source: Source
    meter: Annotated[str, Field(max_length=16)] = ""
    total: Count
    watts: Amount | None = None
    allocations: Annotated[dict[Id, Count], Field(max_length=MAX_METERED)] = {}


class Energy(Message):
    """Joules by how they are known. ``watts``: now, where that is known."""

    measured: float = 0.0
    modelled: float = 0.0
    watts: float | None = None

    @property
    def joules(self) -> float:
        return self.measured + self.modelled


class JobOnNode(Message):
    """What of a node's energy was attributed to a job."""

    job: str
    name: str
    energy: Energy


class NodeEnergy(Message):
    """What a node has used since its energy was first told; None where no agent has told any: then it is unknown.
    ``jobs``: the part of those that have something there now and that may be seen, ``other_jobs`` that of all others;
    ``system``: what was attributed to no job. These add up to ``energy``. ``meter``: what measures or models."""

    node: str
    meter: str | None = None
    energy: Energy | None = None
    jobs: list[JobOnNode] = []
    other_jobs: Energy = Energy()
    system: Energy = Energy()


class TaskEnergy(Message):
    """What was attributed to one task on one node; None where that node tells of no energy: then it is unknown.
    ``attempt``: 0 of one that has moved away from there."""

    task: str
    node: str
    attempt: int
    energy: Energy | None = None


class JobEnergy(Message):
    """What was attributed to a job in all its attempts. ``unknown``: how many of its ``tasks`` ran, or run, where no
    energy is told; it is not in ``energy`` what they use."""

    job: str
    name: str
    energy: Energy
    tasks: list[TaskEnergy] = []
    unknown: int = 0
