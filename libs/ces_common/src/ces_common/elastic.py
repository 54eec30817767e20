"""What a malleable job says of itself: which group of tasks has no fixed number of replicas, and which numbers it may
have. The scheduler decides the number, and changes it while the job runs."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Final, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from ces_common.fields import Document, Name, PositiveRange
from ces_common.quantities import Cpu, Duration, format_duration

LARGEST_SIZE = 512
LONGEST_GRACE = 60  # seconds
MOST_WORK: Final = 10**15  # units
SLOWEST: Final = 1e-9  # units/s: all of MOST_WORK then takes a time that can still be reckoned with
FASTEST: Final = 1e12  # units/s
MOST_HINTS: Final = 64  # sizes: rates between them follow from these
Size = Annotated[int, Field(ge=1, le=LARGEST_SIZE)]
Rate = Annotated[float, Field(ge=SLOWEST, le=FASTEST, allow_inf_nan=False)]
"""Units of a job's work in a second."""
Unit = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9 -]{0,31}$")]


class Workers(PositiveRange):
    """All sizes from ``min`` to ``max``."""

    min: Size = 1
    max: Size


class CpuRange(PositiveRange):
    """What each worker of the group may have, in millicores."""

    min: Cpu
    max: Cpu


class Speed(Document):
    """``unit``: what the program counts as ``step``. ``total``: how many there are in all. ``hint``: size -> units/s,
    for as long as little was measured."""

    unit: Unit = "steps"
    total: Annotated[int, Field(ge=1, le=MOST_WORK)] | None = None
    hint: Annotated[dict[Size, Rate], Field(max_length=MOST_HINTS)] = {}


class Elastic(Document):
    """``cpu``: changed in place while the job runs; None: as the group's resources say. ``grace``: seconds that workers
    have to write a checkpoint, from SIGTERM on, whenever they are told to end."""

    group: Name
    workers: Workers | None = None
    sizes: Annotated[list[Size], Field(max_length=LARGEST_SIZE)] = []
    cpu: CpuRange | None = None
    grace: Duration = 30
    speed: Speed = Speed()

    def includes(self, task: str) -> bool:
        """Whether the task is of the elastic group, at any size."""
        prefix, _, number = task.rpartition("-")
        return prefix == self.group and number.isdigit()

    @field_validator("grace")
    @classmethod
    def _bounded(cls, value: int) -> int:
        if not 0 <= value <= LONGEST_GRACE:
            raise ValueError(f"must be {format_duration(LONGEST_GRACE)} at most")
        return value

    @field_validator("sizes")
    @classmethod
    def _rising(cls, value: list[int]) -> list[int]:
        if any(second <= first for first, second in pairwise(value)):
            raise ValueError("must rise: [1, 2, 4]")
        return value

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.workers is None) == (not self.sizes):
            raise ValueError("give workers: {min, max}, or sizes: a list of the numbers that are allowed")
        return self

    @model_validator(mode="after")
    def _known_sizes(self) -> Self:
        unknown = sorted(self.speed.hint.keys() - set(self.allowed))
        if unknown:
            raise ValueError(
                f"speed.hint: {unknown[0]} is none of the job's sizes; give speeds at sizes that it may have"
            )
        return self

    @property
    def allowed(self) -> range | list[int]:
        """The sizes, rising."""
        return self.sizes if self.workers is None else range(self.workers.min, self.workers.max + 1)

    @property
    def smallest(self) -> int:
        return self.allowed[0]

    @property
    def largest(self) -> int:
        return self.allowed[-1]
