"""The least cut by a mixed-integer programme, with a bound that no answer goes below."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from ces_core.decomposition.clusters import clusters
from ces_core.decomposition.graph import Division, Floats, IndivisibleError, Integers
from ces_core.decomposition.packing import no_packing
from ces_core.integer_programme import TOLERANCE, Programme, Solution

LARGEST = 200
"""Vertices of a graph that is asked for its optimum: the programme grows with vertices times edges."""
MOST_COLUMNS = 300_000
"""Variables of the programme, and rows that keep labels apart: about half a gigabyte."""
PROVEN = TOLERANCE  # share of the cut that rounding leaves between it and its bound


@dataclass(frozen=True)
class Optimum:
    """``part``: of each vertex; ``bound``: no answer with as many parts cuts less, bit/s; 0 where none was found."""

    part: Integers
    bound: float


def optimal(division: Division, parts: int, *, limit_s: float, seed: int = 0) -> Optimum:
    """The least cut with exactly ``parts`` parts, or the best answer that is found within the limit. Each part is
    represented by its first vertex (Campelo, Correa and Frota 2004), so that one answer is not counted once for every
    numbering of its parts. Raises IndivisibleError."""
    begun = monotonic()
    if division.size > LARGEST:
        raise IndivisibleError("by", f"the optimum of {division.size} vertices: {LARGEST} are the most; use clusters")
    try:
        best: Integers | None = clusters(division, parts, seed=seed, deadline=begun + limit_s)
    except IndivisibleError:
        best = None  # the programme may find what packing did not
    if best is not None and (parts in (1, division.size) or division.cut(best) == 0):
        return Optimum(best, division.cut(best))
    form = _Form(division, parts, None if best is None else division.cut(best))
    found, bound, impossible = form.solve(begun + limit_s)
    if found is not None and not division.broken(found) and (best is None or division.cut(found) < division.cut(best)):
        best = found
    if best is None and not impossible:
        raise IndivisibleError("time", f"no way to fit all vertices into {parts} parts was found in {limit_s:g} s")
    if best is None:
        raise no_packing(division, parts)
    cut = division.cut(best)
    bound = min(max(bound, 0.0), cut)
    return Optimum(best, cut if cut - bound <= PROVEN * cut else bound)


class _Form:
    """``at[u, v]``: the variable that says whether v is in the part of which u is the first vertex. ``known``: the cut
    of an answer, more than 0; only what cuts no more is looked for."""

    def __init__(self, division: Division, parts: int, known: float | None) -> None:
        self.division = division
        self.known = known
        # Vertices with many neighbours come first: an edge has a variable for each vertex up to its first end.
        neighbours = division.neighbours
        self.order = sorted(range(division.size), key=lambda v: (-len(neighbours[v]), -sum(neighbours[v].values()), v))
        place = np.argsort(self.order)
        amounts, label = division.amounts[:, self.order], division.label[self.order]
        able = _able(division, amounts, label)
        ends = np.sort(place[division.ends], axis=1)
        _check_size(able, ends, label)
        # HiGHS's tolerances are absolute, so traffic is counted by the cut. A pair that alone is more than the known
        # one is never cut, and twice as much says so as well as all of it. What is nothing beside it is left out, which
        # only lowers the bound.
        heaviest = float(division.traffic.max()) if len(division.traffic) else 1.0
        self.scale = heaviest if known is None else known
        traffic = np.minimum(division.traffic / self.scale, 2.0)
        counted = traffic >= 1e-9
        self.at = {(int(u), int(v)): index for index, (u, v) in enumerate(np.argwhere(able))}
        gain = [0.0] * len(self.at)
        together: list[tuple[int, int, int]] = []  # its variable, and those of both ends
        around: dict[tuple[int, int], list[tuple[int, int]]] = {}  # of v in the part of u: those beside it, and with it
        self.total = float(traffic[counted].sum())
        for (v, w), worth in zip(ends[counted].tolist(), traffic[counted].tolist(), strict=True):
            for u in np.flatnonzero(able[:, v] & able[:, w]).tolist():
                together.append((len(gain), self.at[u, v], self.at[u, w]))
                around.setdefault((u, v), []).append((w, len(gain)))
                around.setdefault((u, w), []).append((v, len(gain)))
                gain.append(worth)
        self.programme = Programme(np.array(gain))
        self._count_members(amounts, able, parts)
        self._keep_apart(label, able)
        for both, first, second in together:
            for end in {first, second}:
                self.programme.row((both, end), (1.0, -1.0), 0.0)
        self._count_neighbours(amounts, around)
        if known is not None:
            worthy = np.flatnonzero(gain).tolist()
            self.programme.row(worthy, [-gain[each] for each in worthy], 1.0 + TOLERANCE - self.total)

    def _count_members(self, amounts: Floats, able: NDArray[np.bool_], parts: int) -> None:
        row, at = self.programme.row, self.at
        size, most = self.division.size, self.division.most
        heads = [at[u, u] for u in range(size)]
        row(heads, [1.0] * size, float(parts))
        row(heads, [-1.0] * size, -float(parts))
        for v in range(size):
            of = [at[u, v] for u in np.flatnonzero(able[:, v]).tolist()]
            row(of, [1.0] * len(of), 1.0)
            row(of, [-1.0] * len(of), -1.0)
        for u in range(size):
            members = np.flatnonzero(able[u]).tolist()
            for v in members[1:]:
                row((at[u, v], heads[u]), (1.0, -1.0), 0.0)
            columns = [at[u, v] for v in members]
            for resource in np.flatnonzero(np.isfinite(most) & (most > 0)).tolist():
                shares = amounts[resource, members] / most[resource]
                shares[0] -= 1.0
                row(columns, shares.tolist(), 0.0)

    def _keep_apart(self, label: Integers, able: NDArray[np.bool_]) -> None:
        """Two labels in the part of a vertex that has none; of one that has, those with others were left out before."""
        for u in np.flatnonzero(label < 0).tolist():
            labelled = [v for v in np.flatnonzero(able[u]).tolist() if label[v] >= 0]
            for index, v in enumerate(labelled):
                for w in labelled[index + 1 :]:
                    if label[w] != label[v]:
                        self.programme.row((self.at[u, v], self.at[u, w], self.at[u, u]), (1.0, 1.0, -1.0), 0.0)

    def _count_neighbours(self, amounts: Floats, around: dict[tuple[int, int], list[tuple[int, int]]]) -> None:
        """Rows that follow from the others for whole numbers, and bound fractions better: a vertex has no more
        neighbours beside it than its part has room for, after the part's first vertex and itself."""
        most = self.division.most
        for resource in np.flatnonzero(np.isfinite(most) & (most > 0)).tolist():
            shares = (amounts[resource] / most[resource]).tolist()
            for (u, v), beside in around.items():
                room = 1.0 - shares[v] - (shares[u] if u != v else 0.0)
                others = [(w, both) for w, both in beside if w != u]
                if sum(shares[w] for w, _ in others) <= room:
                    continue
                columns = [*(both for _, both in others), self.at[u, v]]
                self.programme.row(columns, [*(shares[w] for w, _ in others), -room], 0.0)

    def solve(self, deadline: float) -> tuple[Integers | None, float, bool]:
        """The part of each vertex, if any answer was found; a bound on the cut, bit/s, 0 where there is none; whether
        there is no answer. ``deadline``: by time.monotonic()."""
        found = self._solved(deadline)
        # Without a known cut traffic was counted by the heaviest pair, and the bound may be off by a millionth of that.
        off = 0.0 if self.known is not None else TOLERANCE
        bound = (self.total - found.most - off) * self.scale if np.isfinite(found.most) else 0.0
        if found.values is None:
            return None, bound, found.impossible
        leader = np.zeros(self.division.size, np.int64)
        for (u, v), variable in self.at.items():
            if found.values[variable]:
                leader[self.order[v]] = u
        return np.unique(leader, return_inverse=True)[1].astype(np.int64), bound, False

    def _solved(self, deadline: float) -> Solution:
        found = self.programme.solve(deadline - monotonic())
        if found.impossible and self.known is not None:  # there is the known answer: the presolve cut it off
            found = self.programme.solve(deadline - monotonic(), presolve=False)
        return found


def _able(division: Division, amounts: Floats, label: Integers) -> NDArray[np.bool_]:
    """Whether v may be in the part of which u is the first vertex, shape (vertices, vertices)."""
    alike = (label[:, None] == label) | (label[:, None] < 0) | (label < 0)
    both = amounts[:, :, None] + amounts[:, None, :]
    fits = np.all(both <= division.ceiling[:, None, None], axis=0)
    found: NDArray[np.bool_] = np.triu(alike & fits, 1) | np.eye(division.size, dtype=bool)
    return found


def _check_size(able: NDArray[np.bool_], ends: Integers, label: Integers) -> None:
    """Raises IndivisibleError for a programme that would take too much memory, before it is built."""
    columns = int(able.sum() + (able[:, ends[:, 0]] & able[:, ends[:, 1]]).sum())
    for u in np.flatnonzero(label < 0).tolist():
        of = np.unique(label[able[u] & (label >= 0)], return_counts=True)[1]
        columns += int(of.sum() ** 2 - (of**2).sum()) // 2
    if columns > MOST_COLUMNS:
        problem = f"the optimum of {len(label)} vertices and {len(ends)} edges takes {columns:,} variables and rows"
        raise IndivisibleError("by", f"{problem}: {MOST_COLUMNS:,} are the most; use clusters")
