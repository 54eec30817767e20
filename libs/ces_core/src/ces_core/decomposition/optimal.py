"""The least cut by a mixed-integer programme, with a bound that no answer goes below."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ces_core.decomposition.clusters import clusters
from ces_core.decomposition.graph import Division, Floats, IndivisibleError, Integers
from ces_core.decomposition.packing import no_packing
from ces_core.gpus.milp import Programme

LARGEST = 200
"""Vertices of a graph that is asked for its optimum: the programme grows with vertices times edges."""
PROVEN = 1e-6  # share of the cut that rounding leaves between it and its bound


@dataclass(frozen=True)
class Optimum:
    """``part``: of each vertex; ``bound``: no answer with as many parts cuts less, bit/s."""

    part: Integers
    bound: float


def optimal(division: Division, parts: int, *, limit_s: float, seed: int = 0) -> Optimum:
    """The least cut with exactly ``parts`` parts, or the best answer that is found within the limit. Each part is
    represented by its first vertex (Campelo, Correa and Frota 2004), so that one answer is not counted once for every
    numbering of its parts. Raises IndivisibleError."""
    if division.size > LARGEST:
        raise IndivisibleError("by", f"the optimum of {division.size} vertices: {LARGEST} are the most; use clusters")
    try:
        best: Integers | None = clusters(division, parts, seed=seed)
    except IndivisibleError:
        best = None  # the programme may find what packing did not
    if parts in (1, division.size) and best is not None:
        return Optimum(best, division.cut(best))
    form = _Form(division, parts, None if best is None else division.cut(best))
    found, bound = form.solve(limit_s)
    if found is not None and not division.broken(found) and (best is None or division.cut(found) < division.cut(best)):
        best = found
    if best is None:
        raise no_packing(division, parts)
    cut = division.cut(best)
    bound = min(max(bound, 0.0), cut)
    return Optimum(best, cut if cut - bound <= PROVEN * cut else bound)


class _Form:
    """``at[u, v]``: the variable that says whether v is in the part of which u is the first vertex."""

    def __init__(self, division: Division, parts: int, known: float | None) -> None:
        self.division = division
        # Vertices with many neighbours come first: an edge has a variable for each vertex up to its first end.
        neighbours = division.neighbours
        self.order = sorted(range(division.size), key=lambda v: (-len(neighbours[v]), -sum(neighbours[v].values()), v))
        place = {vertex: index for index, vertex in enumerate(self.order)}
        amounts, label = division.amounts[:, self.order], division.label[self.order]
        size = division.size
        self.scale = float(division.traffic.max()) if len(division.traffic) else 1.0
        self.at: dict[tuple[int, int], int] = {}
        for u in range(size):
            for v in range(u, size):
                alike = label[u] == label[v] or -1 in (label[u], label[v])
                if v == u or (alike and division.fits(amounts[:, u] + amounts[:, v])):
                    self.at[u, v] = len(self.at)
        gain = [0.0] * len(self.at)
        together: list[tuple[int, int, int]] = []  # its variable, and those of both ends
        around: dict[tuple[int, int], list[tuple[int, int]]] = {}  # of v in the part of u: those beside it, and with it
        self.total = 0.0
        for (a, b), traffic in zip(division.ends.tolist(), (division.traffic / self.scale).tolist(), strict=True):
            v, w = sorted((place[a], place[b]))
            self.total += traffic
            for u in range(v + 1):
                if (u, v) in self.at and (u, w) in self.at:
                    together.append((len(gain), self.at[u, v], self.at[u, w]))
                    around.setdefault((u, v), []).append((w, len(gain)))
                    around.setdefault((u, w), []).append((v, len(gain)))
                    gain.append(traffic)
        self.programme = Programme(np.array(gain), np.ones(len(gain)))
        self._count_members(amounts, label, parts)
        for both, first, second in together:
            if first != second:
                for end in {first, second}:
                    self.programme.count(("both", both, end), 0.0, both, 1.0)
                    self.programme.count(("both", both, end), 0.0, end, -1.0)
        self._count_neighbours(amounts, around)
        if known is not None:  # only what cuts no more is looked for
            least = self.total - known / self.scale - 1e-6
            for variable, worth in enumerate(gain):
                if worth:
                    self.programme.count("known", -least, variable, -worth)

    def _count_members(self, amounts: Floats, label: Integers, parts: int) -> None:
        count, most = self.programme.count, self.division.most
        labels = sorted({*label.tolist()} - {-1})
        for (u, v), variable in self.at.items():
            own = self.at[u, u]
            count(("one", v), 1.0, variable, 1.0)
            count(("some", v), -1.0, variable, -1.0)
            if v == u:
                count("parts", float(parts), variable, 1.0)
                count("no fewer", -float(parts), variable, -1.0)
            else:
                count(("led", u, v), 0.0, variable, 1.0)
                count(("led", u, v), 0.0, own, -1.0)
            for resource, limit in enumerate(most):
                if np.isfinite(limit) and limit > 0:
                    share = amounts[resource, v] / limit
                    count(("room", resource, u), 1e-9, variable, share - 1.0 if v == u else share)
        if len(labels) > 1:
            for (u, v), first in self.at.items():
                if label[u] >= 0 or label[v] < 0:
                    continue  # the first vertex has a label: others were left out above
                for w in range(v + 1, len(label)):
                    if label[w] >= 0 and label[w] != label[v] and (u, w) in self.at:
                        for variable in (first, self.at[u, w]):
                            count(("apart", u, v, w), 0.0, variable, 1.0)
                        count(("apart", u, v, w), 0.0, self.at[u, u], -1.0)

    def _count_neighbours(self, amounts: Floats, around: dict[tuple[int, int], list[tuple[int, int]]]) -> None:
        """Rows that follow from the others for whole numbers, and bound fractions better: a vertex has no more
        neighbours beside it than its part has room for, after the part's first vertex and itself."""
        for (u, v), beside in around.items():
            for resource, limit in enumerate(self.division.most):
                if not (np.isfinite(limit) and limit > 0):
                    continue
                shares = amounts[resource] / limit
                room = 1.0 - shares[v] - (shares[u] if u != v else 0.0)
                others = [(w, both) for w, both in beside if w != u]
                if sum(shares[w] for w, _ in others) <= room:
                    continue
                for w, both in others:
                    self.programme.count(("beside", resource, u, v), 1e-9, both, float(shares[w]))
                self.programme.count(("beside", resource, u, v), 1e-9, self.at[u, v], -float(room))

    def solve(self, limit_s: float) -> tuple[Integers | None, float]:
        """The part of each vertex, if any answer was found, and a bound on the cut, bit/s."""
        values, most = self.programme.solve(limit_s)
        bound = (self.total - most) * self.scale if np.isfinite(most) else 0.0
        if values is None:
            return None, bound
        leader = np.zeros(self.division.size, np.int64)
        for (u, v), variable in self.at.items():
            if values[variable]:
                leader[self.order[v]] = u
        return np.unique(leader, return_inverse=True)[1].astype(np.int64), bound
