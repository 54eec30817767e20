"""An application's graph at the levels that were asked for, divided by the way that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic

from rich.progress import Progress

from ces_core.decomposition.clusters import clusters
from ces_core.decomposition.graph import Graph, IndivisibleError, Limits, Parts, division, parts_of
from ces_core.decomposition.levels import Granularity, parts_at, pure_levels
from ces_core.decomposition.mobile import mobile
from ces_core.decomposition.optimal import optimal
from ces_core.decomposition.packing import least_parts


class Way(StrEnum):
    """Louvain clusters, the least cut, parts of one kind, or what is near the user and what is not."""

    clusters = "clusters"
    optimal = "optimal"
    compute = "compute"
    mobile = "mobile"


@dataclass(frozen=True)
class Wish:
    """What was asked for. ``most_state``: bytes, or None."""

    by: Way
    graph: Graph
    limits: Callable[[int], Limits]
    most_state: float | None
    limit_s: float
    seed: int


@dataclass(frozen=True)
class Made:
    """A division. ``near``: traffic of the part near the user with the others, the gap of that, and its state."""

    parts: Parts
    near: tuple[float, float, float] | None = None
    said: str = ""


@dataclass(frozen=True)
class Levels:
    """``asked``: the number of parts that was asked for; ``missing``: numbers of parts that there is no level of, with
    the reason."""

    made: list[Made]
    asked: int
    missing: dict[int, str] = field(default_factory=dict)


def levels_of(wish: Wish, parts: int | None, granularity: Granularity, bars: Progress) -> Levels:
    """So many parts, else three levels or, by ``compute``, a hierarchy. Raises IndivisibleError where the level that
    was asked for cannot be."""
    size = len(wish.graph.vertices)
    least = least_parts(division(wish.graph, wish.limits(1), pure=wish.by is Way.compute))
    if wish.by is Way.mobile:
        least = max(least, 2)
    if wish.by is Way.compute:
        bars.add_task("levels divided", total=None)
        most = parts if parts is not None else parts_at(Granularity.fine, size, least)
        asked = parts if parts is not None else parts_at(granularity, size, least)
        return Levels([Made(each) for each in pure_levels(wish.graph, wish.limits, most)], asked)
    asked = parts if parts is not None else parts_at(granularity, size, least)
    counts = {asked} if parts is not None else {parts_at(each, size, least) for each in Granularity}
    bar = bars.add_task("levels divided", total=len(counts))
    found = Levels([], asked)
    for count in sorted(counts):
        try:
            found.made.append(_divided(wish, count))
        except IndivisibleError as error:
            if count == asked:
                raise
            found.missing[count] = str(error)
        bars.advance(bar)
    return found


def _divided(wish: Wish, count: int) -> Made:
    asked = division(wish.graph, wish.limits(count))
    match wish.by:
        case Way.optimal:
            found = optimal(asked, count, limit_s=wish.limit_s, seed=wish.seed)
            parts = parts_of(wish.graph, found.part, found.bound)
            return Made(parts, said="no bound was found in time" if found.bound == 0 < parts.cut else "")
        case Way.mobile:
            halves = mobile(wish.graph, asked, count, most_state=wish.most_state, limit_s=wish.limit_s, seed=wish.seed)
            gap = 1 - halves.bound / halves.near_cut if halves.near_cut else 0.0
            parts = parts_of(wish.graph, halves.part, halves.bound if count == 2 else None)
            return Made(parts, (halves.near_cut, gap, halves.state))
        case _:
            part = clusters(asked, count, seed=wish.seed, deadline=monotonic() + wish.limit_s)
            return Made(parts_of(wish.graph, part))


def asked_for(levels: Sequence[Made], asked: int) -> Made:
    """The level with that many parts, else the nearest one."""
    return min(levels, key=lambda each: abs(len(each.parts.members) - asked))
