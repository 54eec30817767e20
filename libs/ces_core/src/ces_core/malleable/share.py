"""The minimum satisfactory share: the least size, over time, with which a job meets its deadline.

As in Gu et al., "ElasticFlow: An Elastic Serverless Training Platform for Distributed Deep Learning", ASPLOS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ces_core.malleable.free import FreeSteps
from ces_core.malleable.model import SpeedProfile

TOLERANCE = 1e-9
"""Iterations, by those left, that rounding may cost."""


@dataclass(frozen=True, slots=True)
class Plan:
    """``steps``: (begin in seconds, size) in order, equal neighbours merged; the last holds until ``end_s``. The work
    is done at ``done_s``, a whole second from the begin of its step; ``end_s`` is rounded up to a slot from there."""

    steps: tuple[tuple[float, int], ...]
    done_s: float
    end_s: float
    on_time: bool

    @property
    def size(self) -> int:
        """The size now."""
        return self.steps[0][1]

    @property
    def next_change_s(self) -> float:
        """When the size changes first; infinite if it does not."""
        return self.steps[1][0] if len(self.steps) > 1 else math.inf

    def pieces(self) -> Iterator[tuple[float, float, int]]:
        """What it books: (begin, end, GPUs)."""
        ends = [begin for begin, _ in self.steps[1:]] + [self.end_s]
        for (begin, size), end in zip(self.steps, ends, strict=True):
            if size and begin < self.end_s:
                yield begin, min(end, self.end_s), size

    def gpu_s(self) -> float:
        """GPU-seconds that it books."""
        return sum((end - begin) * size for begin, end, size in self.pieces())

    def given_back(self) -> list[tuple[float, float, int]]:
        """The pieces that undo its booking."""
        return [(begin, end, -size) for begin, end, size in self.pieces()]


def slot_end(now_s: float, time_s: float, slot_s: float) -> float:
    """``time_s`` rounded up to a whole number of slots from now."""
    return time_s if math.isinf(time_s) else now_s + math.ceil((time_s - now_s) / slot_s) * slot_s


def plan(
    left: float,
    profile: SpeedProfile,
    deadline_s: float,
    free: FreeSteps,
    slot_s: float,
    first: int = 0,
    stays: bool = False,
) -> Plan:
    """The cheapest plan that meets the deadline with what is free, by the first size that suffices: from the period in
    which that size must begin, and the size below it before. Where none suffices: the most possible, which ends late.

    ``left``: iterations. ``free`` begins now, and everything is free in the end. ``first``: a size that it has now in
    any case, until what is free changes or the deadline; the minimum share follows. ``stays``: it has its smallest size
    at least, which must be free for as long as the job takes with it.
    """
    return _Planner(left, profile, deadline_s, free, slot_s, stays).plan(first)


class _Planner:
    def __init__(
        self, left: float, profile: SpeedProfile, deadline_s: float, free: FreeSteps, slot_s: float, stays: bool
    ) -> None:
        self.least = profile.sizes[0] if stays else 0
        self.left, self.profile, self.deadline_s, self.slot_s = left, profile, deadline_s, slot_s
        self.now_s = free.times[0]
        self.due_s = slot_end(self.now_s, deadline_s, slot_s)
        self.periods = free
        self.steps: list[tuple[float, int]] = []
        if self.now_s < self.due_s < math.inf:
            self.periods = free.copy()
            self.periods.split(self.due_s)
        times = self.periods.times
        self.due = times.index(self.due_s) if self.due_s in times else len(times)
        self.due = self.due if self.due_s > self.now_s else 0
        self.usable = [profile.fitting(gpus) for gpus in self.periods.free]

    def plan(self, first: int) -> Plan:
        begin = 0
        if first:
            done = self._spend(0, first)
            if done is not None:
                return self._ended(done, self.now_s)
            begin = 1
        if begin < self.due:
            for size, below in zip(self.profile.sizes, (self.least, *self.profile.sizes), strict=False):
                if size > self.periods.free[-1]:
                    break
                start = self._start(size, begin)
                if start is not None:
                    return self._on_time(size, below, begin, start)
        return self._late(begin)

    def _length(self, place: int) -> float:
        """Seconds of work in a period: what begins before the deadline's slot is over ends with the deadline, although
        the slot goes on; it may have begun within what is left of that slot."""
        times = self.periods.times
        end_s = times[place + 1] if place + 1 < len(times) else math.inf
        return max(0.0, min(end_s, self.deadline_s) - times[place]) if place < self.due else end_s - times[place]

    def _spend(self, place: int, size: int) -> float | None:
        """Have this size in this period; gives when the work is done, if it is within it."""
        self.steps.append((self.periods.times[place], size))
        if not size:
            return None
        length, rate = self._length(place), self.profile.rate(size)
        if self.left * (1 - TOLERANCE) <= length * rate:
            return self.periods.times[place] + min(math.ceil(self.left / rate), length)
        self.left -= length * rate
        return None

    def _start(self, size: int, begin: int) -> int | None:
        """The latest period from which this size is enough until the deadline; None if there is none."""
        done = 0.0
        for place in range(self.due - 1, begin - 1, -1):
            if held := min(size, self.usable[place]):
                done += self._length(place) * self.profile.rate(held)
                if done >= self.left:
                    return place
        return None

    def _on_time(self, size: int, below: int, begin: int, start: int) -> Plan:
        for place in range(begin, self.due):
            done = self._spend(place, min(size if place >= start else below, self.usable[place]))
            if done is not None:
                if place + 1 < self.due:
                    self.steps.append((self.periods.times[place + 1], 0))
                return self._ended(done, self.periods.times[place])
        return self._late(self.due)  # rounding has eaten the last iteration

    def _late(self, begin: int) -> Plan:
        fits = self.profile.fitting(self.periods.free[-1])
        for place in range(begin, len(self.periods.times)):
            done = self._spend(place, min(self.usable[place], fits))
            if done is not None:
                return self._ended(done, self.now_s)
        raise ValueError("the job's smallest size is larger than everything that is ever free")

    def _ended(self, done_s: float, from_s: float) -> Plan:
        """``from_s``: from where slots are counted. Zero-length neighbours of the same size are one step."""
        steps = [step for i, step in enumerate(self.steps) if not i or step[1] != self.steps[i - 1][1]]
        end_s = slot_end(from_s, done_s, self.slot_s)
        return Plan(tuple(steps), done_s, end_s, done_s <= self.deadline_s)
