"""An application's graph at the levels that were asked for, divided in the way that was asked for, and what each part
then asks for as a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic

from ces_core.decomposition.clusters import clusters
from ces_core.decomposition.graph import Graph, IndivisibleError, Limits, Parts, division, even_limits, parts_of
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


def part_limits(graph: Graph, by: Way, limits: Limits) -> Callable[[int], Limits]:
    """The most that one of so many parts may ask for. ``limits``: as somebody set them; without one for CPU it is an
    even share, but for what is near a user, which is as large as the cut makes it."""

    def of(count: int) -> Limits:
        even = even_limits(graph, count).cpu if by is not Way.mobile else None
        return Limits(even if limits.cpu is None else limits.cpu, limits.memory, limits.gpu)

    return of


def levels_of(
    wish: Wish, parts: int | None, granularity: Granularity, done: Callable[[int, int | None], None] = lambda *_: None
) -> Levels:
    """So many parts, else three levels or, by ``compute``, a hierarchy. ``done``: hears how many levels are divided,
    and of how many, None where that is not known. Raises IndivisibleError where the level that was asked for cannot
    be."""
    size = len(wish.graph.vertices)
    least = least_parts(division(wish.graph, wish.limits(1), pure=wish.by is Way.compute))
    if wish.by is Way.mobile:
        least = max(least, 2)
    if wish.by is Way.compute:
        done(0, None)
        most = parts if parts is not None else parts_at(Granularity.fine, size, least)
        asked = parts if parts is not None else parts_at(granularity, size, least)
        return Levels([Made(each) for each in pure_levels(wish.graph, wish.limits, most)], asked)
    asked = parts if parts is not None else parts_at(granularity, size, least)
    counts = {asked} if parts is not None else {parts_at(each, size, least) for each in Granularity}
    found = Levels([], asked)
    done(0, len(counts))
    for number, count in enumerate(sorted(counts), 1):
        try:
            found.made.append(_divided(wish, count))
        except IndivisibleError as error:
            if count == asked:
                raise
            found.missing[count] = str(error)
        done(number, len(counts))
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


@dataclass(frozen=True)
class JobPart:
    """What one part asks for, in millicores, bytes and cards. ``near``: it is the one near the user."""

    vertices: Sequence[str]
    cpu: float
    memory: float
    gpu: int
    arch: str | None
    near: bool = False


def job_parts(parts: Parts, by: Way) -> list[JobPart]:
    """The parts as tasks, in their order."""
    vertices = parts.graph.vertices
    return [
        JobPart(
            vertices=[vertices[v].name for v in members],
            cpu=parts.amount(index, "cpu"),
            memory=parts.amount(index, "memory"),
            gpu=int(parts.amount(index, "gpu")),
            arch=next(iter(parts.archs(index)), None),
            near=by is Way.mobile and any(vertices[v].near for v in members),
        )
        for index, members in enumerate(parts.members)
    ]
