"""Gandiva: jobs of one size share a part of the cluster by turns, and that part is as large as their demand.

Xiao et al., "Gandiva: Introspective Cluster Scheduling for Deep Learning", OSDI 2018; without packing several jobs on
one GPU and without trying other places.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ces_core.malleable.model import Running
from ces_core.malleable.peers.rigid import fit_in_order, fixed_size
from ces_core.malleable.policy import Decision, Moment


@dataclass(frozen=True)
class Gandiva:
    """``turn_s``: how long a turn is."""

    turn_s: float = 60.0

    def __call__(self, moment: Moment) -> Decision:
        classes = defaultdict[int, list[Running]](list)
        for each in moment.active:
            classes[fixed_size(each, moment.capacity)].append(each)
        demand = sum(size * len(jobs) for size, jobs in classes.items())
        first, rest = [], []
        for _, jobs in sorted(classes.items(), reverse=True):
            turns = sorted(jobs, key=lambda each: each.ran_s)
            part = int(moment.capacity * len(jobs) / demand) if demand > moment.capacity else len(jobs)
            first += turns[:part]
            rest += turns[part:]
        sizes = fit_in_order([*first, *sorted(rest, key=lambda each: each.ran_s)], moment.capacity)
        waits = len(sizes) < len(moment.active)
        return Decision(sizes, until_s=moment.now_s + self.turn_s if waits else float("inf"))
