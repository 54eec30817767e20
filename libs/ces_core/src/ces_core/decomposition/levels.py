"""How finely a graph is divided: the numbers of parts that are worth a look, and which of them is the best placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import pow

import numpy as np

from ces_core.decomposition.graph import Graph, IndivisibleError, Limits, Parts, division, parts_of
from ces_core.decomposition.merging import Hierarchy
from ces_core.decomposition.packing import no_packing, packed
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
    """The number of parts: 100 vertices become 5, 10 or 22. Never fewer than ``least``, nor more than a job has. Raises
    IndivisibleError where ``least`` is more than that."""
    if least > MOST_PARTS:
        message = f"the graph takes {least} parts at least, and a job has {MOST_PARTS} at most"
        raise IndivisibleError("capacity", message)
    return max(min(round(pow(vertices, _POWERS[granularity])), MOST_PARTS), min(2, vertices), least)


@dataclass(frozen=True)
class Level:
    """``placed``: the score of where its parts would go, None where nobody looked or they have no place."""

    parts: Parts
    placed: float | None = None


def pure_levels(graph: Graph, limits: Callable[[int], Limits], most: int) -> tuple[Parts, ...]:
    """Parts whose vertices are all of one architecture and class, at several numbers of parts from ``most`` down to as
    few as are found: each about half of the one before. ``limits``: of a part, by their number. Raises
    IndivisibleError."""
    found: list[Parts] = []
    wanted = min(most, len(graph.vertices))
    last = False
    while True:
        asked = division(graph, limits(wanted), pure=True)
        hierarchy = Hierarchy(asked)
        part = hierarchy.at(wanted)
        if part is None:  # it merges greedily, and packing may still find a way
            part = packed(asked, wanted, np.random.default_rng(0))
        if part is not None:
            found.append(parts_of(graph, refined(asked, part, wanted)))
            if last or wanted == 1:
                return tuple(found)
            wanted //= 2
        elif not found:
            raise no_packing(asked, wanted)
        else:  # the top of the hierarchy, unless that is the level before
            last, wanted = True, hierarchy.fewest
            if wanted >= len(found[-1].members):
                return tuple(found)


def best_placed(levels: Sequence[Parts], place: Callable[[Parts], float | None]) -> tuple[Level, ...]:
    """Each level with the score of its place, best first, and fewer parts first among equals; no place comes last."""
    scored = [Level(each, place(each)) for each in levels]
    return tuple(
        sorted(scored, key=lambda level: (level.placed is None, -(level.placed or 0.0), len(level.parts.members)))
    )
