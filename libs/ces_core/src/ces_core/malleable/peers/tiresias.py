"""Tiresias: who has had least GPU-time comes first, in few queues, and first come, first served within one.

Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019. The variant by Gittins index
knows how much GPU-time jobs take as a rule.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ces_core.malleable.model import Running
from ces_core.malleable.peers.rigid import fit_in_order, fixed_size
from ces_core.malleable.policy import Decision, Moment

LIMITS = (3250.0, 7200.0)
"""GPU-seconds at which a job leaves the first queue, and the second."""


@dataclass(frozen=True)
class Tiresias:
    """``promote``: a job that has waited for this many times as long as it ran is served as if new; 0: none is."""

    limits: tuple[float, ...] = LIMITS
    promote: float = 0.0

    def __call__(self, moment: Moment) -> Decision:
        ordered = sorted(moment.active, key=lambda each: (self._queue(each, moment.now_s), each.size == 0))
        sizes = fit_in_order(ordered, moment.capacity)
        leaves = [
            moment.now_s + (limit - each.attained) / sizes[each.name]
            for each in moment.active
            if each.name in sizes
            for limit in self.limits
            if limit > each.attained
        ]
        return Decision(sizes, until_s=min(leaves, default=math.inf))

    def _queue(self, each: Running, now_s: float) -> int:
        waited = now_s - each.job.arrived_s - each.ran_s
        if self.promote and each.ran_s and not each.size and waited >= self.promote * each.ran_s:
            return 0
        return bisect_right(self.limits, each.attained)


@dataclass(frozen=True)
class Gittins:
    """``services``: GPU-seconds that jobs have taken elsewhere, ascending. ``delta``: how far ahead it looks, in
    GPU-seconds, and how often it decides again."""

    services: tuple[float, ...]
    delta: float = LIMITS[0]

    def __call__(self, moment: Moment) -> Decision:
        ranks = {each.name: gittins_index(each.attained, self.services, self.delta) for each in moment.active}
        sizes = fit_in_order(sorted(moment.active, key=lambda each: -ranks[each.name]), moment.capacity)
        steps = [self.delta / fixed_size(each, moment.capacity) for each in moment.active if each.name in sizes]
        return Decision(sizes, until_s=moment.now_s + min(steps, default=math.inf))


def gittins_index(attained: float, services: Sequence[float], delta: float) -> float:
    """The chance that a job that has attained ``attained`` GPU-seconds ends within ``delta`` more, divided by the
    GPU-seconds that this takes on average. 0 beyond the longest that was ever seen."""
    begin, end = bisect_right(services, attained), bisect_right(services, attained + delta)
    longer = len(services) - begin
    if not longer:
        return 0.0
    spent = sum(services[begin:end]) - attained * (end - begin) + delta * (len(services) - end)
    return (end - begin) / spent if spent else math.inf
