"""What a malleable job says of itself: which group of tasks has no fixed number of replicas, and which numbers it may
have. The scheduler decides the number, and changes it while the job runs."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from ces_common.fields import Document, Name
from ces_common.quantities import Duration, format_duration

LARGEST_SIZE = 512
LONGEST_GRACE = 60  # seconds
MOST_WORK = 1e15  # units of a job, and of a second
Size = Annotated[int, Field(ge=1, le=LARGEST_SIZE)]


class Workers(Document):
    """All sizes from ``min`` to ``max``."""

    min: Size = 1
    max: Size

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError("min is more than max")
        return self


class Speed(Document):
    """How much a malleable job has to do, and how fast it does it. ``total``: units of work in all; ``hint``: size ->
    units per second, as far as its user knows."""

    unit: Name = "steps"
    total: Annotated[float, Field(gt=0, le=MOST_WORK)] | None = None
    hint: Annotated[dict[Size, Annotated[float, Field(gt=0, le=MOST_WORK)]], Field(max_length=LARGEST_SIZE)] = {}


class Elastic(Document):
    """``grace``: seconds that workers have to write a checkpoint, from SIGTERM on, whenever they are told to end."""

    group: Name
    workers: Workers | None = None
    sizes: Annotated[list[Size], Field(max_length=LARGEST_SIZE)] = []
    grace: Duration = 30
    speed: Speed | None = None

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
