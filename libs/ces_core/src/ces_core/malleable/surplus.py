"""What is free after every minimum share: given out one size at a time, to whom it saves most.

As ElasticFlow (ASPLOS 2023) does: a job that would finish earlier at a larger size now frees GPU-time later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ces_core.malleable.admission import Shares
from ces_core.malleable.model import Running
from ces_core.malleable.share import Plan, plan

Worth = Callable[[Plan, Plan, int], float]
"""From a plan, the one with a larger size now, and how many GPUs it adds, to how much that is worth; the most wins."""


def saved_gpu_s(old: Plan, new: Plan, added: int) -> float:
    """GPU-seconds saved for each GPU added; below zero where the larger size wastes some."""
    return (old.gpu_s() - new.gpu_s()) / added


def give_surplus(
    running: Sequence[Running], shares: Shares, slot_s: float, worth: Worth = saved_gpu_s, keep: bool = True
) -> list[Running]:
    """Raise sizes in ``shares`` until nothing that fits is left; jobs at size 0 come first. ``keep``: no job that is on
    time is made late for it. Gives the jobs in the order of the last round."""
    order = list(running)
    values: dict[str, float] = {}
    while shares.free_now:
        offers = {}
        for each in order:
            offered = _offer(each, shares, slot_s, keep)
            if offered is not None:
                name = each.job.name
                old = shares.plans[name]
                offers[name] = offered
                values[name] = worth(old, offered, offered.size - old.size) if old.size else math.inf
            elif each.profile.above(shares.plans[each.job.name].size):
                values[each.job.name] = -math.inf
        order.sort(key=lambda each: -values.get(each.job.name, -math.inf))
        winner = next((each for each in order if each.job.name in offers), None)
        if winner is None:
            break
        shares.replace(winner.job.name, offers[winner.job.name])
    return order


def _offer(each: Running, shares: Shares, slot_s: float, keep: bool) -> Plan | None:
    """Its plan with the next larger size now; None where there is none that fits."""
    old = shares.plans[each.job.name]
    size = each.profile.above(old.size)
    if not size or size - old.size > shares.free_now:
        return None
    free = shares.free.copy()
    free.book(old.given_back())
    new = plan(each.left, each.profile, each.job.deadline_s, free, slot_s, first=size)
    return None if keep and old.on_time and not new.on_time else new
