"""Malleable jobs: training that runs at any of several sizes, with a speed for each and, mostly, a deadline."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

Pieces = Sequence[tuple[float, float, int]]
"""(begin, end, size) of GPUs that are booked, in seconds."""


@dataclass(frozen=True)
class SpeedProfile:
    """How fast a job is at each size. ``sizes``: numbers of GPUs, ascending; ``rates``: iterations/s, one for each.

    Raises ValueError where sizes do not ascend from 1 or more, or a rate is not a positive number.
    """

    sizes: tuple[int, ...]
    rates: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.sizes) != len(self.rates) or not self.sizes or self.sizes[0] < 1:
            raise ValueError(f"{len(self.sizes)} sizes and {len(self.rates)} rates make no speed profile")
        if any(later <= size for size, later in zip(self.sizes, self.sizes[1:], strict=False)):
            raise ValueError(f"sizes must ascend: {self.sizes}")
        if not all(math.isfinite(rate) and rate > 0 for rate in self.rates):
            raise ValueError(f"rates must be positive: {self.rates}")

    @staticmethod
    def of(rates: Mapping[int, float]) -> SpeedProfile:
        """From size -> iterations/s; sizes that do not run (rate 0, negative or not a number) are left out."""
        good = {size: rate for size, rate in sorted(rates.items()) if math.isfinite(rate) and rate > 0}
        return SpeedProfile(tuple(good), tuple(good.values()))

    @cached_property
    def _rate_at(self) -> dict[int, float]:
        return {0: 0.0, **dict(zip(self.sizes, self.rates, strict=True))}

    def rate(self, size: int) -> float:
        """Iterations/s; 0 at size 0. Raises KeyError for a size that is none of the job's."""
        return self._rate_at[size]

    def fitting(self, free: int) -> int:
        """The largest size of at most ``free`` GPUs; 0 if none is that small."""
        place = bisect_right(self.sizes, free)
        return self.sizes[place - 1] if place else 0

    def above(self, size: int) -> int:
        """The next larger size; 0 if there is none."""
        place = bisect_right(self.sizes, size)
        return self.sizes[place] if place < len(self.sizes) else 0

    @property
    def cap(self) -> int:
        """The largest size."""
        return self.sizes[-1]

    @cached_property
    def rising(self) -> SpeedProfile:
        """Without the sizes that are no faster than a smaller one: more GPUs always help."""
        kept: dict[int, float] = {}
        for size, rate in zip(self.sizes, self.rates, strict=True):
            if not kept or rate > max(kept.values()):
                kept[size] = rate
        return SpeedProfile(tuple(kept), tuple(kept.values()))


@dataclass(frozen=True)
class MalleableJob:
    """``work``: iterations in all. ``deadline_s``: infinite for best effort. ``profile``: the sizes to choose from.
    ``asked``: the size that a user of a scheduler without elasticity asked for. ``memory``: share of an edge server's
    memory that one worker needs. ``measured``: every size that was measured, useful or not; None: as ``profile``."""

    name: str
    arrived_s: float
    work: float
    deadline_s: float
    profile: SpeedProfile
    asked: int = 1
    memory: float = 1.0
    measured: SpeedProfile | None = None

    @property
    def speeds(self) -> SpeedProfile:
        """All sizes that it can run at."""
        return self.measured or self.profile

    @property
    def earliest_end_s(self) -> float:
        """When it would end at its best size from its arrival on."""
        return self.arrived_s + self.work / max(self.speeds.rates)


@dataclass(slots=True, eq=False)
class Running:
    """A job that has arrived and is not done: ``left`` iterations, ``size`` GPUs now (0: waiting), ``ran_s`` seconds at
    any size and ``attained`` GPU-seconds so far. ``server``: the edge server that it runs on, -1 for none. ``promise``:
    what it was last told to have, as (begin, end, size) in seconds. ``stays``: it runs and is stopped for nobody, so it
    has its smallest size at least until it is done."""

    job: MalleableJob
    left: float
    size: int = 0
    ran_s: float = 0.0
    attained: float = 0.0
    server: int = -1
    promise: Pieces = ()
    stays: bool = False

    @property
    def name(self) -> str:
        return self.job.name

    @property
    def profile(self) -> SpeedProfile:
        return self.job.profile


def by_deadline(running: Iterable[Running]) -> list[Running]:
    """Earliest deadline first; equal ones stay in their order."""
    return sorted(running, key=lambda each: each.job.deadline_s)
