"""When edge servers are idle: their owners' load comes in tides, with bursts, and now and then a server is away.

The daily curve has the trough of a fiftieth of its peak, and half of the day below half of the peak, that were measured
on edge servers (Xu et al., as cited in 《软件学报》 36 (12), 2025, p. 5482). Bursts and outages are our assumptions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

DAY_S = 86_400.0
TROUGH = 1 / 50
"""Of the peak."""


@dataclass(frozen=True)
class Tides:
    """``servers``: how many there are. ``idle_below``: a server is idle while its owner's load is below this share of
    the peak. ``spread_s``: standard deviation of when its day begins. ``bursts``: of the owner, in a day, ``burst_s``
    seconds long on average; ``outages``: likewise. ``speed``: of a server, by that of a GPU in the cloud, on average,
    and how far from it servers may be, as a share."""

    servers: int
    idle_below: float = 0.5
    spread_s: float = 3600.0
    bursts: float = 4.0
    burst_s: float = 900.0
    outages: float = 0.25
    outage_s: float = 3600.0
    speed: float = 0.3
    speed_spread: float = 0.2


def load(time_s: float, peak_s: float) -> float:
    """The owner's load by the peak, at a time of day; a cosine whose highest point is at ``peak_s``."""
    return TROUGH + (1 - TROUGH) * (1 + math.cos(2 * math.pi * (time_s - peak_s) / DAY_S)) / 2


def idle_times(tides: Tides, begin_s: float, end_s: float, seed: int) -> list[tuple[float, frozenset[int]]]:
    """From when on which servers are idle, from ``begin_s`` on; none after ``end_s``. The same seed, the same times."""
    rng = np.random.default_rng(seed)
    peak = begin_s + rng.uniform(0.0, DAY_S)
    changes: list[tuple[float, int, int]] = []
    for server in range(tides.servers):
        busy = _tide(tides, peak + rng.normal(0.0, tides.spread_s), begin_s, end_s)
        busy += _drawn(rng, tides.bursts, tides.burst_s, begin_s, end_s)
        busy += _drawn(rng, tides.outages, tides.outage_s, begin_s, end_s)
        for first, last in busy:
            changes += [(max(first, begin_s), server, 1), (min(last, end_s), server, -1)]
    return _swept(tides.servers, changes, begin_s, end_s)


def server_speeds(tides: Tides, seed: int) -> dict[int, float]:
    """Of each server, uniform around the average."""
    rng = np.random.default_rng((seed, 1))
    around = rng.uniform(1 - tides.speed_spread, 1 + tides.speed_spread, tides.servers)
    return {server: float(tides.speed * factor) for server, factor in enumerate(around)}


def _tide(tides: Tides, peak_s: float, begin_s: float, end_s: float) -> list[tuple[float, float]]:
    """When the daily curve is too high: the same time around each peak."""
    height = (tides.idle_below - TROUGH) / (1 - TROUGH)
    half = math.acos(min(1.0, max(-1.0, 2 * height - 1))) / (2 * math.pi) * DAY_S
    first = math.floor((begin_s - peak_s) / DAY_S)
    days = range(first, math.ceil((end_s - peak_s) / DAY_S) + 1)
    middles = [peak_s + day * DAY_S for day in days]
    return [(at - half, at + half) for at in middles if at + half > begin_s and at - half < end_s]


def _drawn(
    rng: np.random.Generator, daily: float, length_s: float, begin_s: float, end_s: float
) -> list[tuple[float, float]]:
    count = rng.poisson(daily * (end_s - begin_s) / DAY_S)
    begins, lengths = rng.uniform(begin_s, end_s, count), rng.exponential(length_s, count)
    return [(float(begin), float(begin + length)) for begin, length in zip(begins, lengths, strict=True)]


def _swept(
    servers: int, changes: list[tuple[float, int, int]], begin_s: float, end_s: float
) -> list[tuple[float, frozenset[int]]]:
    busy = [0] * servers
    idle = {begin_s: frozenset(range(servers))}
    for time, server, change in sorted(changes):
        busy[server] += change
        if time < end_s:
            idle[time] = frozenset(number for number in range(servers) if not busy[number])
    found: list[tuple[float, frozenset[int]]] = []
    for time, numbers in idle.items():
        if not found or found[-1][1] != numbers:
            found.append((time, numbers))
    return [*found, (end_s, frozenset())]
