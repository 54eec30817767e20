"""A hierarchy of parts: every vertex alone at first, then two parts become one at a time."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from ces_core.decomposition.graph import Division, Integers


class Hierarchy:
    """Which parts become one, and in what order: those with most traffic between them, for what the smaller one asks
    for; where none are left, the two smallest. A part never holds more than it may. ``least``: it goes no further."""

    def __init__(self, division: Division, least: int = 1) -> None:
        self.size = division.size
        self._merges: list[tuple[int, int]] = []
        amounts = division.amounts.T.copy()
        label = division.label.copy()
        near = [dict(each) for each in division.neighbours]
        scale = amounts.max(axis=0)
        weight = (amounts / np.where(scale > 0, scale, 1.0)).max(axis=1) + 1e-3
        alive = np.ones(self.size, bool)
        changes = np.zeros(self.size, np.int64)
        heap: list[tuple[float, int, int, int, int]] = []

        stuck = np.zeros(self.size, bool)

        def able(a: int, others: Integers) -> NDArray[np.bool_]:
            same = (label[others] == label[a]) | (label[others] == -1) | (label[a] == -1)
            fits: NDArray[np.bool_] = np.all(amounts[others] + amounts[a] <= division.ceiling, axis=1)
            found: NDArray[np.bool_] = fits & same
            return found

        def smallest() -> tuple[int, int] | None:
            """The two smallest parts that may become one. A part that fits with none never will: parts only grow."""
            left = np.flatnonzero(alive & ~stuck)
            order = left[np.lexsort((left, weight[left]))]
            for place, a in enumerate(order.tolist()):
                others = order[place + 1 :]
                if len(fitting := others[able(a, others)]):
                    return min(a, int(fitting[0])), max(a, int(fitting[0]))
                stuck[a] = True
            return None

        def offer(a: int, b: int) -> None:
            if able(a, np.array([b]))[0]:
                a, b = min(a, b), max(a, b)
                worth = near[a][b] / min(weight[a], weight[b])
                heapq.heappush(heap, (-worth, a, b, int(changes[a]), int(changes[b])))

        for a in range(self.size):
            for b in near[a]:
                if a < b:
                    offer(a, b)
        while self.size - len(self._merges) > least:
            pair = None
            while heap and pair is None:
                _, a, b, first, second = heapq.heappop(heap)
                if alive[a] and alive[b] and changes[a] == first and changes[b] == second:
                    pair = a, b
            if pair is None:
                pair = smallest()
            if pair is None:
                break
            a, b = pair
            self._merges.append(pair)
            alive[b] = False
            amounts[a] += amounts[b]
            weight[a] += weight[b]
            label[a] = max(label[a], label[b])
            changes[a] += 1
            near[b].pop(a, None)
            near[a].pop(b, None)
            for other, traffic in near[b].items():
                del near[other][b]
                near[a][other] = near[other][a] = near[a].get(other, 0.0) + traffic
            for other in near[a]:
                offer(a, other)

    @property
    def fewest(self) -> int:
        """Parts at the top of the hierarchy."""
        return self.size - len(self._merges)

    def at(self, parts: int) -> Integers | None:
        """The part of each vertex where there are ``parts`` of them; None where the hierarchy has no such level."""
        if not self.fewest <= parts <= self.size:
            return None
        into = np.arange(self.size)
        for a, b in self._merges[: self.size - parts]:
            into[into == b] = a
        return np.unique(into, return_inverse=True)[1].astype(np.int64)
