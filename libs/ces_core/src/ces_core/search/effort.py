"""How much a search may still do: time where there is a limit, else a number of partial placements."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

from ces_core.compiled.jit import COMPILED

SLOW = 1 if COMPILED else 20
"""Factor by which budgets shrink without numba."""
BUDGET = 20_000 // SLOW
"""Partial placements examined if there is no time limit."""
SLICE_S = 0.001
"""Approximate duration of compiled calls between checks of the clock."""
PACE = 20_000.0 / SLOW
"""Partial placements per second assumed before it is measured."""

Clock = Callable[[], float]


class Effort:
    """Remaining effort of a search: time if there is a deadline, else partial placements."""

    def __init__(self, deadline: float | None, clock: Clock) -> None:
        self._deadline, self._clock = deadline, clock
        self._budget = BUDGET
        self._pace = PACE

    def left(self) -> float:
        """Seconds, or partial placements."""
        return self._budget if self._deadline is None else self.seconds()

    def seconds(self) -> float:
        """Infinite without a deadline."""
        return math.inf if self._deadline is None else self._deadline - self._clock()

    def spend(self, work: Callable[[int], int], *, maximum: int = sys.maxsize, until: float = 0.0) -> int:
        """Calls ``work`` with the number of partial placements to examine, slice by slice, until it has examined
        ``maximum`` in all, less than ``until`` is left, or nothing is left to examine. Returns the number examined."""
        seen = 0
        while seen < maximum and (left := self.left() - until) > 0:
            slice_ = left if self._deadline is None else min(left, SLICE_S) * self._pace
            limit = max(1, min(int(slice_), maximum - seen))
            began = self._clock()
            found = work(limit)
            seen += found
            self._budget -= found
            if found:
                self._pace = found / max(self._clock() - began, 1e-9)
            if found < limit:
                break
        return seen
