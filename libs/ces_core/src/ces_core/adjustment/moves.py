"""Assignments that differ from the present one by a given number of moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray

MOST_ROWS = 100_000
"""Assignments with one number of moves that are looked at; where there are more, those of the most promising places."""


@dataclass(frozen=True)
class Moves:
    """``nodes``: where each task could go. ``complete``: whether that is everywhere."""

    present: tuple[int, ...]
    nodes: tuple[IntArray, ...]
    complete: bool = True

    @staticmethod
    def of(present: Sequence[int], domain: BoolArray) -> Moves:
        """``domain``: (T, N), where tasks may be."""
        everywhere = [np.flatnonzero(row).astype(np.int64) for row in domain]
        return Moves(tuple(present), tuple(row[row != n] for row, n in zip(everywhere, present, strict=True)))

    def count(self, moves: int) -> int:
        """How many assignments there are: the elementary symmetric polynomial of the numbers of nodes."""
        of_size = [1] + [0] * moves
        for row in self.nodes:
            for size in range(moves, 0, -1):
                of_size[size] += of_size[size - 1] * len(row)
        return of_size[moves]

    def narrowed(self, moves: int, promise: FloatArray) -> Moves:
        """With as few places, the most promising first, as MOST_ROWS asks for. ``promise``: (T, N)."""
        if self.count(moves) <= MOST_ROWS:
            return self
        task = np.concatenate([np.full(len(row), t) for t, row in enumerate(self.nodes)])
        node = np.concatenate(self.nodes)
        ranked = np.argsort(-promise[task, node], kind="stable")
        fewer = self
        while fewer.count(moves) > MOST_ROWS:
            ranked = ranked[: int(0.9 * len(ranked))]
            kept = [np.sort(node[ranked[task[ranked] == t]]) for t in range(len(self.nodes))]
            fewer = Moves(self.present, tuple(kept), complete=False)
        return fewer

    def assignments(self, moves: int) -> Iterator[IntArray]:
        """(M, T) each: all assignments with exactly this many tasks elsewhere, by sets of tasks."""
        for tasks in combinations(range(len(self.nodes)), moves):
            choices = np.meshgrid(*(self.nodes[t] for t in tasks), indexing="ij")
            rows = np.tile(np.array(self.present, dtype=np.int64), (choices[0].size if choices else 1, 1))
            for t, nodes in zip(tasks, choices, strict=True):
                rows[:, t] = nodes.ravel()
            if len(rows):
                yield rows
