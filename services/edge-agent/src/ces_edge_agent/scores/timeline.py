"""Rates from how work went on over time. Pure.

A control group's quota lets a thread run for a part of each period (100 ms) and stops it for the rest. So what is
counted are windows of whole periods, wherever they begin: each of them has the same part in which it ran.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Sequence

Timeline = Sequence[tuple[float, float]]
"""Moments (seconds, rising) and the work done until then. At least one entry."""


def work_at(timeline: Timeline, moment: float) -> float:
    """The work done until a moment, as if it went on evenly between two entries; before the first one and after the
    last one, as there."""
    after = bisect_left(timeline, (moment,))
    if after == 0:
        return timeline[0][1]
    if after == len(timeline):
        return timeline[-1][1]
    (began, before), (ended, until) = timeline[after - 1], timeline[after]
    return before + (until - before) * (moment - began) / (ended - began)


def window_rates(timelines: Sequence[Timeline], begin: float, window_s: float, repeats: int) -> list[float]:
    """The rate of all timelines together in each of so many windows, one behind the other; work per second."""
    edges = [begin + number * window_s for number in range(repeats + 1)]
    done = [sum(work_at(timeline, edge) for timeline in timelines) for edge in edges]
    return [(later - earlier) / window_s for earlier, later in itertools.pairwise(done)]
