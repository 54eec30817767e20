"""Pollux: sizes that make the harmonic mean of all speedups largest, by a fitted model of an iteration's time.

Qiao et al., "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning", OSDI 2021. The global batch
stays here, so that statistical efficiency is the same at every size and goodput is throughput; the search is a local
one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from ces_core.malleable.model import Running, SpeedProfile
from ces_core.malleable.policy import Decision, Moment

Array = NDArray[np.float64]
CHANGED = 0.9
"""What a speedup counts for a job whose size changes."""


def step_s(parameters: Array, sizes: Array, node: int) -> Array:
    """Seconds for an iteration at each size. ``parameters``: (alpha, beta) of computing one GPU's part of the batch,
    (alpha, beta) of the network within a node and across nodes, and gamma, 1 (no overlap) to 10."""
    a, b, near, near_more, far, far_more, gamma = parameters
    computing = a + b / sizes
    more = np.maximum(sizes - 2, 0)
    within, across = near + near_more * more, far + far_more * more
    network = np.where(sizes <= 1, 0.0, np.where(sizes <= node, within, across))
    larger = np.maximum(computing, network)
    scaled = (computing / larger) ** gamma + (network / larger) ** gamma
    return np.asarray(larger * scaled ** (1.0 / gamma))


@lru_cache(maxsize=1024)
def fit(profile: SpeedProfile, node: int) -> dict[int, float]:
    """Iterations/s by the fitted model, at the sizes that were measured."""
    sizes, seconds = np.array(profile.sizes, float), 1.0 / np.array(profile.rates)
    start = np.array([seconds.min() / 10, seconds[0], *[seconds.min() / 10] * 4, 2.0])
    low, high = np.full(7, 1e-9), np.full(7, seconds.max() * 10)
    low[6], high[6] = 1.0, 10.0
    found = least_squares(
        lambda p: np.log(step_s(p, sizes, node) / seconds), np.clip(start, low, high), bounds=(low, high)
    )
    return {int(size): float(1.0 / step) for size, step in zip(sizes, step_s(found.x, sizes, node), strict=True)}


@dataclass(frozen=True)
class Pollux:
    """``node``: GPUs of a node. It decides every ``round_s`` seconds, and at arrivals and ends."""

    node: int
    round_s: float = 60.0

    def __call__(self, moment: Moment) -> Decision:
        if not moment.active:
            return Decision({})
        search = _Search(moment, self.node)
        search.climb()
        sizes = {name: size for name, size in search.sizes.items() if size}
        return Decision(sizes, until_s=moment.now_s + self.round_s)


class _Search:
    def __init__(self, moment: Moment, node: int) -> None:
        self.jobs, self.capacity = list(moment.active), moment.capacity
        fair = max(1, moment.capacity // len(self.jobs))
        self.values = {each.name: self._values(each, fair, node) for each in self.jobs}
        self.sizes = self._kept()
        self.free = moment.capacity - sum(self.sizes.values())

    @staticmethod
    def _values(each: Running, fair: int, node: int) -> Mapping[int, float]:
        """What each size costs the harmonic mean: the inverse of the speedup on the fair share."""
        rates = fit(each.profile, node)
        base = rates[each.profile.fitting(fair) or each.profile.sizes[0]]
        costs = {0: 1e3}
        for size, rate in rates.items():
            costs[size] = base / rate / (1.0 if size == each.size else CHANGED)
        return costs

    def _kept(self) -> dict[str, int]:
        sizes, free = {}, self.capacity
        for each in self.jobs:
            size = each.size if each.size <= free and each.size in self.values[each.name] else 0
            sizes[each.name] = size
            free -= size
        return sizes

    def climb(self) -> None:
        """Grow one job by one size, or shrink one for another's sake, as long as the mean rises."""
        while True:
            grown = [found for each in self.jobs if (found := self._growth(each)) is not None]
            if not grown:
                return
            gain, name, size, shrunk = max(grown, key=lambda found: found[0])
            if gain <= 1e-9:
                return
            if shrunk is not None:
                self._set(*shrunk)
            self._set(name, size)

    def _set(self, name: str, size: int) -> None:
        self.free += self.sizes[name] - size
        self.sizes[name] = size

    def _growth(self, each: Running) -> tuple[float, str, int, tuple[str, int] | None] | None:
        size = each.profile.above(self.sizes[each.name])
        if not size:
            return None
        costs = self.values[each.name]
        gain, needed = costs[self.sizes[each.name]] - costs[size], size - self.sizes[each.name] - self.free
        if needed <= 0:
            return gain, each.name, size, None
        best: tuple[float, tuple[str, int]] | None = None
        for other in self.jobs:
            held = self.sizes[other.name]
            smaller = other.profile.fitting(held - needed) if held >= needed and other is not each else -1
            if smaller >= 0:
                loss = self.values[other.name][smaller] - self.values[other.name][held]
                if best is None or loss < best[0]:
                    best = loss, (other.name, smaller)
        return None if best is None or math.isinf(best[0]) else (gain - best[0], each.name, size, best[1])
