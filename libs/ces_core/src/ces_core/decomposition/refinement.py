"""Moves of single vertices that lessen the cut (Fiduccia and Mattheyses 1982, for any number of parts)."""

from __future__ import annotations

from time import monotonic

import numpy as np
from numpy.typing import NDArray

from ces_core.decomposition.graph import EPSILON, Division, Integers

PASSES = 12
FEW = 1000  # moves, at most, that are quicker all worked out anew than sought out


def refined(division: Division, part: Integers, parts: int, *, deadline: float = np.inf) -> Integers:
    """An answer that cuts no more than ``part``, with as many parts, none of them empty. In a pass each vertex moves
    at most once, also where it costs; what the pass keeps is its best moment at which no part was above its capacity.
    Every second pass lets parts be too full by one vertex on the way, so that two may change places. ``deadline``: by
    time.monotonic(); no pass begins after it."""
    best, cut = part, division.cut(part)
    idle = 0
    for turn in range(PASSES):
        if idle == 2 or monotonic() > deadline:
            break
        answer = _Pass(division, best, parts, loose=turn % 2 == 1).best()
        # Where traffic spans many orders of magnitude, sums of gains are not exact; cuts are.
        if (found := division.cut(answer)) < cut:
            best, cut, idle = answer, found, 0
        else:
            idle += 1
    return best.copy()


class _Pass:
    """``towards``: traffic of each vertex with each part, shape (vertices, parts). ``gain``, ``target``: the best move
    of each vertex now, minus infinity where it has none."""

    def __init__(self, division: Division, part: Integers, parts: int, *, loose: bool) -> None:
        self.division, self.parts = division, parts
        self.part = part.copy()
        self.loads = division.loads(part, parts)
        bounded = np.isfinite(division.most)
        self.bounded = np.flatnonzero(bounded)
        self.room = division.ceiling + (division.amounts.max(axis=1) if loose else 0.0)
        self.members = np.bincount(part, minlength=parts)
        # Vertices of each label in each part; the last row counts those that have none.
        self.labelled = np.zeros((int(division.label.max()) + 2, parts), np.int64)
        np.add.at(self.labelled, (division.label, part), 1)
        self.towards = np.zeros((division.size, parts))
        ends, traffic = division.ends, division.traffic
        np.add.at(self.towards, (ends[:, 0], part[ends[:, 1]]), traffic)
        np.add.at(self.towards, (ends[:, 1], part[ends[:, 0]]), traffic)
        self.free = np.ones(division.size, bool)
        self.gain = np.full(division.size, -np.inf)
        self.target = np.zeros(division.size, np.int64)
        self.least = EPSILON * division.cut(part)

    def best(self) -> Integers:
        """The best moment of the pass."""
        trail: list[tuple[int, int]] = []
        gained = best = 0.0
        kept = 0
        patience = 50 + self.division.size // 10
        self._look(np.arange(self.division.size))
        for _ in range(self.division.size):
            vertex = int(self.gain.argmax())
            step = float(self.gain[vertex])
            if step == -np.inf or len(trail) - kept > patience:
                break
            trail.append((vertex, int(self.part[vertex])))
            self._move(vertex, int(self.target[vertex]))
            gained += step
            if gained > best + self.least and np.all(self.loads <= self.division.ceiling[:, None]):
                best, kept = gained, len(trail)
        for vertex, source in reversed(trail[kept:]):
            self.part[vertex] = source
        return self.part

    def _look(self, vertices: Integers) -> None:
        """Works their best moves out anew."""
        every = np.arange(self.parts)[None, :]
        gains = self.towards[vertices] - self.towards[vertices, self.part[vertices]][:, None]
        gains[self._blocked(vertices[:, None], every)] = -np.inf
        self.target[vertices] = gains.argmax(axis=1)
        self.gain[vertices] = gains.max(axis=1)

    def _blocked(self, vertices: Integers, targets: Integers) -> NDArray[np.bool_]:
        """Whether these moves cannot be. The two shapes are broadcast."""
        division, own = self.division, self.part[vertices]
        blocked: NDArray[np.bool_] = ~(self.free & (self.members[self.part] > 1))[vertices] | (own == targets)
        for row in self.bounded:
            blocked = blocked | (division.amounts[row][vertices] + self.loads[row][targets] > self.room[row])
        if len(self.labelled) > 1:
            label = division.label[vertices]
            strangers = self.labelled[:-1].sum(axis=0)[targets] - self.labelled[label, targets]
            blocked = blocked | ((label >= 0) & (strangers > 0))
        return blocked

    def _move(self, vertex: int, target: int) -> None:
        division, source = self.division, int(self.part[vertex])
        label, amounts = division.label[vertex], division.amounts[:, vertex]
        self.free[vertex] = False
        self.part[vertex] = target
        for place, sign in ((source, -1), (target, 1)):
            self.members[place] += sign
            self.labelled[label, place] += sign
            self.loads[:, place] += sign * amounts
        # Anew: what had traffic with it, what was to follow it, and single vertices that now may leave, or must not.
        anew = self.target == target
        anew |= (self.part == target) if self.members[target] == 2 else False
        anew |= (self.part == source) if self.members[source] == 1 else False
        anew[vertex] = True
        for other, traffic in division.neighbours[vertex].items():
            self.towards[other, source] -= traffic
            self.towards[other, target] += traffic
            anew[other] = True
        if self.towards.size <= FEW:
            anew[:] = True
        self._look(np.flatnonzero(anew))
        if anew.all():
            return
        # The part that it left has room for others.
        every = np.flatnonzero(~anew & self.free)
        gains = self.towards[every, source] - self.towards[every, self.part[every]]
        gains[self._blocked(every, np.full(1, source))] = -np.inf
        better = (gains > self.gain[every]) | ((gains == self.gain[every]) & (source < self.target[every]))
        self.gain[every[better]], self.target[every[better]] = gains[better], source
