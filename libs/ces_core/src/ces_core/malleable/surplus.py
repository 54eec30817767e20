"""What is free after every minimum share: given out one size at a time, to whom it saves most.

As ElasticFlow (ASPLOS 2023) does: a job that would finish earlier at a larger size now frees GPU-time later.
"""

from __future__ import annotations

import heapq
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


def give_surplus(running: Sequence[Running], shares: Shares, slot_s: float) -> None:
    """Raise sizes in ``shares`` until nothing that fits is left: jobs at size 0 first, then by :func:`saved_gpu_s`. No
    job that is on time is made late for it. An offer is valued again when its turn comes."""
    heap = [(-math.inf, place) for place in range(len(running))]
    while heap and shares.free_now:
        _, place = heapq.heappop(heap)
        each = running[place]
        offered = offer(each, shares, slot_s, keep=True)
        if offered is None:
            continue  # what is free now only shrinks, so that it never fits again
        old = shares.plans[each.name]
        value = saved_gpu_s(old, offered, offered.size - old.size) if old.size else math.inf
        if heap and -heap[0][0] > value:
            heapq.heappush(heap, (-value, place))
            continue
        shares.replace(each.name, offered)
        heapq.heappush(heap, (-math.inf, place))


def give_surplus_strictly(
    running: Sequence[Running], shares: Shares, slot_s: float, worth: Worth, keep: bool
) -> list[Running]:
    """The same by any worth, with all offers made again after each gift. ``keep``: no job that is on time is made late.
    Gives the jobs in the order of the last round."""
    order = list(running)
    values: dict[str, float] = {}
    while shares.free_now:
        offers = {}
        for each in order:
            offered = offer(each, shares, slot_s, keep)
            old = shares.plans[each.name]
            if offered is not None:
                offers[each.name] = offered
                values[each.name] = worth(old, offered, offered.size - old.size) if old.size else math.inf
            elif each.profile.above(old.size):
                values[each.name] = -math.inf
        order.sort(key=lambda each: -values.get(each.name, -math.inf))
        winner = next((each for each in order if each.name in offers), None)
        if winner is None:
            break
        shares.replace(winner.name, offers[winner.name])
    return order


def offer(each: Running, shares: Shares, slot_s: float, keep: bool) -> Plan | None:
    """Its plan with the next larger size now; None where there is none that fits, or ``keep`` forbids it."""
    old = shares.plans[each.name]
    size = each.profile.above(old.size)
    if not size or size - old.size > shares.free_now:
        return None
    free = shares.free.copy()
    free.book(old.given_back())
    new = plan(each.left, each.profile, each.job.deadline_s, free, slot_s, size, each.stays)
    return None if keep and old.on_time and not new.on_time else new
