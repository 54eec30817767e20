"""How finely a graph is divided: the numbers of parts that are worth a look, and which of them is the best placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import pow

from ces_core.decomposition.graph import Graph, IndivisibleError, Limits, Parts, division, parts_of
from ces_core.decomposition.merging import Hierarchy
from ces_core.decomposition.packing import least_parts, no_packing
from ces_core.decomposition.refinement import refined

MOST_PARTS = 64
"""Groups of tasks that a job file may have; each part is one."""


class Granularity(StrEnum):
    """About the cube root, the square root, or the square of the cube root of the number of vertices."""

    fine = "fine"
    medium = "medium"
    coarse = "coarse"


_POWERS = {Granularity.coarse: 1 / 3, Granularity.medium: 1 / 2, Granularity.fine: 2 / 3}


def parts_at(granularity: Granularity, vertices: int, least: int = 1) -> int:
    """The number of parts: 100 vertices become 5, 10 or 22. Never fewer than ``least``, nor more than a job has."""
    return max(min(round(pow(vertices, _POWERS[granularity])), MOST_PARTS), min(2, vertices), least)


@dataclass(frozen=True)
class Level:
    """``placed``: the score of where its parts would go, None where nobody looked or they have no place."""

    parts: Parts
    placed: float | None = None


def pure_levels(graph: Graph, limits: Callable[[int], Limits], most: int) -> tuple[Parts, ...]:
    """Parts whose vertices are all of one architecture and class, at several numbers of parts from ``most`` down to as
    few as there can be: each about half of the one before. ``limits``: of a part, by their number. Raises
    IndivisibleError."""
    found: list[Parts] = []
    wanted = min(most, len(graph.vertices))
    while True:
        asked = division(graph, limits(wanted), pure=True)
        hierarchy = Hierarchy(asked)
        part = hierarchy.at(max(wanted, hierarchy.fewest))
        assert part is not None  # the hierarchy begins with every vertex alone
        count = int(part.max()) + 1
        if count > wanted:  # kinds or capacities leave no fewer
            if not found:
                need = f"{count} parts are needed for parts of one architecture and class each, within their capacity"
                raise no_packing(asked, wanted) if least_parts(asked) > wanted else IndivisibleError("parts", need)
            return tuple(found)
        found.append(parts_of(graph, refined(asked, part, count)))
        if count == 1:
            return tuple(found)
        wanted = count // 2


def best_placed(levels: Sequence[Parts], place: Callable[[Parts], float | None]) -> tuple[Level, ...]:
    """Each level with the score of its place, best first, and fewer parts first among equals; no place comes last."""
    scored = [Level(each, place(each)) for each in levels]
    return tuple(
        sorted(scored, key=lambda level: (level.placed is None, -(level.placed or 0.0), len(level.parts.members)))
    )
