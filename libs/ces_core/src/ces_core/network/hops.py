"""Hop counts between nodes: one row per node, computed on demand, cached up to a limit, carried over when links change;
and the adjacency lists they follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import COMPILED, compiled
from ces_core.model.lru import LruCache
from ces_core.model.topology import IntArray
from ces_core.network.hop_updates import GIVEN_UP, SAME, update_rows

HopRow = NDArray[np.signedinteger[Any]]
KEPT_ROWS = 64 << 20
"""Bytes of rows kept per direction: all rows up to some 5,800 nodes, every third of 10,000 nodes."""
CHANGES = 256
"""With more changed links than this, rows are computed from scratch instead of being updated."""
BATCH = 256
"""Rows computed or updated per call."""

BITS = 62 if COMPILED else 1
"""Rows computed side by side, one bit each; without compilation, handling bits costs more than it saves."""


class Neighbours(NamedTuple):
    """Each node's neighbours in one direction: entries ``first[n]`` up to ``first[n + 1]``, by rising link."""

    first: IntArray  # (nodes + 1,)
    node: NDArray[np.int32]  # (links,)
    link: NDArray[np.int32]  # (links,)

    @staticmethod
    def of(nodes: int, here: IntArray, there: IntArray) -> Neighbours:
        order = np.argsort(here, kind="stable")
        first = np.zeros(nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(here, minlength=nodes), out=first[1:])
        return Neighbours(first, there[order].astype(np.int32), order.astype(np.int32))


class HopRows:
    """Row ``n`` holds the hops between every node and node ``n``, in one direction; -1 if there is no path."""

    def __init__(self, first: IntArray, node: NDArray[np.int32]) -> None:
        """``first`` and ``node`` lead away from node ``n``: along links or against them."""
        self._first, self._node = plain(first), plain(node)
        self._nodes = len(first) - 1
        self._type = np.int16 if self._nodes <= np.iinfo(np.int16).max else np.int32
        self._kept: LruCache[int, HopRow] = LruCache(KEPT_ROWS)

    def __bool__(self) -> bool:
        """Whether any row is cached."""
        return bool(self.kept())

    def kept(self) -> list[tuple[int, HopRow]]:
        """Node and row, most recently used first."""
        return list(self._kept.newest_first())

    @property
    def most(self) -> int:
        """The limit on the number of cached rows."""
        return KEPT_ROWS // max(1, self._nodes * np.dtype(self._type).itemsize)

    def row(self, node: int) -> HopRow:
        found = self._kept.get(node)
        return self.rows([node])[0] if found is None else found

    def rows(self, nodes: Sequence[int]) -> list[HopRow]:
        found = [self._kept.get(node) for node in nodes]
        missing = sorted({node for node, row in zip(nodes, found, strict=True) if row is None})
        new: dict[int, HopRow] = {}
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            block = np.empty((len(batch), self._nodes), dtype=self._type)
            spread(self._first, self._node, np.array(batch, dtype=np.int64), block)
            # Copies, so that each can be forgotten on its own.
            new |= {node: self._keep(node, row.copy()) for node, row in zip(batch, block, strict=True)}
        return [new[node] if row is None else row for node, row in zip(nodes, found, strict=True)]

    def block(self, nodes: Sequence[int]) -> HopRow:
        """The rows of ``nodes`` as one array (nodes asked for, nodes)."""
        block: HopRow = np.empty((len(nodes), self._nodes), dtype=self._type)
        for i, row in enumerate(self.rows(nodes)):
            block[i] = row
        return block

    def adopt(self, earlier: HopRows, ahead: Neighbours, gone: IntArray, new: tuple[IntArray, IntArray]) -> None:
        """Take over the rows of ``earlier``, updated for changed links; unaffected rows are shared, and rows with too
        many changes are dropped.

        Seen towards node ``n``: ``ahead`` are the present neighbours that a node links to; ``gone`` the nodes that lost
        a link ahead, ``new`` the near and the far ends of the new links.
        """
        if len(gone) + len(new[0]) > CHANGES:
            return
        links = (plain(ahead.first), plain(ahead.node), self._first, self._node)
        oldest_first = earlier.kept()[::-1]
        for start in range(0, len(oldest_first), BATCH):
            batch = oldest_first[start : start + BATCH]
            block = np.array([row for _, row in batch])
            verdicts = update_rows(*links, block, gone, *new).tolist()
            for (node, row), mended, verdict in zip(batch, block, verdicts, strict=True):
                if verdict != GIVEN_UP:
                    self._keep(node, row if verdict == SAME else mended.copy())

    def _keep(self, node: int, row: HopRow) -> HopRow:
        row.setflags(write=False)
        self._kept.put(node, row, row.nbytes)
        return row


def plain(array: NDArray[Any]) -> Any:
    """The array as compiled code needs it; without compilation as lists, which are faster to walk."""
    return array if COMPILED else array.tolist()


@compiled
def spread(first: Any, node: Any, starts: NDArray[np.int64], rows: HopRow) -> None:
    """Breadth-first search from all starts at once; ``rows[i]`` gets the hops from ``starts[i]``. By hand, as scipy's
    ``csgraph`` searches from one start after the other and cannot be called from compiled code.

    Every node has a bit per start, so a link is looked at once per distance at which starts reach it, not once per
    start (Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2014).
    """
    nodes = len(first) - 1
    rows[:] = -1
    seen = np.zeros(nodes, dtype=np.int64)  # which starts have reached a node
    now = np.zeros(nodes, dtype=np.int64)  # which have just done so
    soon = np.zeros(nodes, dtype=np.int64)  # which do so next
    front = np.empty(nodes, dtype=np.int64)
    ahead = np.empty(nodes, dtype=np.int64)
    for low in range(0, len(starts), BITS):
        group = min(BITS, len(starts) - low)
        seen[:] = 0
        reached = 0
        for i in range(group):
            begin = starts[low + i]
            if soon[begin] == 0:
                ahead[reached] = begin
                reached += 1
            soon[begin] |= 1 << i
        hops = 0
        while reached > 0:
            front, ahead = ahead, front
            for f in range(reached):
                here = front[f]
                now[here] = soon[here]
                soon[here] = 0
                seen[here] |= now[here]
                for i in range(group):
                    if now[here] >> i & 1:
                        rows[low + i, here] = hops
            hops += 1
            count = 0
            for f in range(reached):
                here = front[f]
                for c in range(first[here], first[here + 1]):
                    other = node[c]
                    new = now[here] & ~seen[other]
                    if new != 0:
                        if soon[other] == 0:
                            ahead[count] = other
                            count += 1
                        soon[other] |= new
            reached = count
