"""How many GPUs are free over time: a step function that plans are booked on."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable


class FreeSteps:
    """``free[i]`` GPUs are free from ``times[i]`` (seconds, ascending) until the next time, the last ones for ever."""

    __slots__ = ("free", "times")

    def __init__(self, times: list[float], free: list[int]) -> None:
        self.times, self.free = times, free

    @staticmethod
    def flat(now_s: float, capacity: int) -> FreeSteps:
        """Everything free from now on."""
        return FreeSteps([now_s], [capacity])

    def copy(self) -> FreeSteps:
        return FreeSteps(self.times.copy(), self.free.copy())

    def at(self, time_s: float) -> int:
        """Free GPUs at a time from the first one on."""
        return self.free[max(bisect_right(self.times, time_s) - 1, 0)]

    def least(self, begin_s: float, end_s: float) -> int:
        """The fewest GPUs that are free at any time between."""
        first = max(bisect_right(self.times, begin_s) - 1, 0)
        return min(self.free[first : max(bisect_left(self.times, end_s), first + 1)])

    def split(self, time_s: float) -> int:
        """Make ``time_s`` the begin of a period; gives the period's place. It must not lie before the first time."""
        place = bisect_left(self.times, time_s)
        if place == len(self.times) or self.times[place] != time_s:
            self.times.insert(place, time_s)
            self.free.insert(place, self.free[place - 1])
        return place

    def book(self, pieces: Iterable[tuple[float, float, int]]) -> None:
        """Take GPUs away (or give back, where negative) in pieces ``(begin, end, GPUs)``; equal neighbours merge."""
        for begin, end, size in pieces:
            if size and end > begin:
                first = self.split(begin)
                last = self.split(end) if end != float("inf") else len(self.times)
                for place in range(first, last):
                    self.free[place] -= size
        self._merge()

    def _merge(self) -> None:
        kept = [i for i, free in enumerate(self.free) if not i or free != self.free[i - 1]]
        if len(kept) != len(self.times):
            self.times = [self.times[i] for i in kept]
            self.free = [self.free[i] for i in kept]
