"""How many millicores each worker of jobs with elastic CPU has. Pure.

What is shared are places, each with a capacity: nodes, and what a tenant's quota leaves it. Every worker of a job has
the same amount, its level: a gang waits for its slowest. So a level is like the rate of a flow, and places are like the
links on its path; levels are filled as max-min fair rates are (Bertsekas and Gallager, Data Networks, 6.5.2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

STEP: Final = 50  # millicores by which levels rise
LEAST_CHANGE: Final = 0.1  # of what a worker has: less is not worth telling its node
Place = tuple[str, str]  # NODE or TENANT, and its name
NODE: Final = "node"
TENANT: Final = "tenant"


@dataclass(frozen=True)
class Sharer:
    """A running job with elastic CPU. ``level``: what each of its workers is to have now; ``least`` and ``most``: what
    they may have; ``workers``: how many of them draw from each place."""

    name: str
    priority: int
    level: int
    least: int
    most: int
    workers: Mapping[Place, int]


def levels(sharers: Iterable[Sharer], capacity: Mapping[Place, float]) -> dict[str, int]:
    """The level of each job. All have their least; then the more urgent jobs rise before all others, and of those with
    the same priority always the one with the lowest level, until a place of it is full or it has its most.
    ``capacity``: millicores of each place for all sharers together."""
    sharers = list(sharers)
    found = {each.name: each.least for each in sharers}
    left = dict(capacity)
    for each in sharers:
        _take(left, each, each.least)
    for _, urgent in groupby(sorted(sharers, key=lambda each: -each.priority), key=lambda each: each.priority):
        rising = list(urgent)
        while rising:
            each = min(rising, key=lambda one: (found[one.name], one.name))
            more = min(STEP, each.most - found[each.name])
            if more <= 0 or not fits(left, each, more):
                rising.remove(each)
                continue
            _take(left, each, more)
            found[each.name] += more
    return found


def fits(left: Mapping[Place, float], sharer: Sharer, more: float) -> bool:
    """Whether each worker of a job can have ``more`` millicores beside what it has."""
    return all(more * count <= left[place] for place, count in sharer.workers.items())


def next_change(
    sharers: Sequence[Sharer], capacity: Mapping[Place, float], free: Mapping[Place, float], able: Iterable[str]
) -> tuple[str, int] | None:
    """The job that goes to another level next, and to which; None where all are as they should be, but for what is not
    worth a change. What others are to have is given up first; then the most urgent of those that are ``able`` to grow
    rises, as far as what is ``free`` of its places allows now."""
    wanted, growing = levels(sharers, capacity), set(able)
    in_order = sorted(sharers, key=lambda each: (-each.priority, each.level, each.name))
    rising = [each for each in in_order if each.name in growing and _worth(each, wanted[each.name] - each.level)]
    needed = {place for each in rising for place in each.workers}
    for each in reversed(in_order):
        if _worth(each, each.level - wanted[each.name]) and needed & each.workers.keys():
            return each.name, wanted[each.name]
    for each in rising:
        room = min(int(free[place] // count) for place, count in each.workers.items())
        more = min(wanted[each.name] - each.level, room)
        if _worth(each, more):
            return each.name, each.level + more
    return None


def given_up(sharers: Iterable[Sharer], lacking: Mapping[Place, float]) -> tuple[str, int] | None:
    """The job that goes to a lower level for another one that lacks millicores in some places (``lacking``), and that
    level: of the least urgent, the one with the highest level, by as much as it takes. None where nobody has any to
    spare there."""
    for each in sorted(sharers, key=lambda each: (each.priority, -each.level, each.name)):
        short = [lacking[place] / count for place, count in each.workers.items() if lacking.get(place, 0) > 0]
        if short and each.level > each.least:
            return each.name, max(each.least, each.level - math.ceil(max(short) / STEP) * STEP)
    return None


def _worth(sharer: Sharer, change: int) -> bool:
    return change >= max(1, sharer.level * LEAST_CHANGE)


def _take(left: dict[Place, float], sharer: Sharer, cpu: int) -> None:
    for place, count in sharer.workers.items():
        left[place] -= cpu * count
