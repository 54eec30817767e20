"""All hop-shortest paths between ordered pairs of nodes, over directed links.

Shortest paths are rarely unique, and which of the equals a flow takes matters, so the table keeps the ties. Pairs
are worked out when first asked for: a decision touches few of the P^2 pairs, and later decisions find them ready.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_TIES = 32
"""At most so many equally short paths are kept per ordered pair."""
KEPT_FLAT = 64
"""So many choices of nodes keep their flat paths."""


class Path(NamedTuple):
    """One way through the network. A path within a node has no link."""

    nodes: tuple[int, ...]
    links: tuple[int, ...]
    loads: tuple[tuple[int, int], ...]
    """``(resource, how often)``: what one unit of bandwidth uses. Resources are the links, then the media:
    resource ``len(links) + m`` is medium ``m``, which a path may use more than once."""


class FlatPaths(NamedTuple):
    """The paths between C chosen nodes as arrays, for compiled code.

    Paths ``pair_first[a * C + b]`` up to the next entry lead from the a-th to the b-th chosen node, in the order of
    :meth:`PathTable.between`; path ``q`` loads ``resource[path_first[q] : path_first[q + 1]]``, each ``times`` times.
    The path from a node to itself is there and loads nothing.
    """

    pair_first: NDArray[np.int64]  # (C * C + 1,)
    path_first: NDArray[np.int64]  # (paths + 1,)
    resource: NDArray[np.int64]
    times: NDArray[np.float64]


class PathTable:
    """Hop counts and hop-shortest paths of one topology; grows as it is asked, never changes an answer."""

    def __init__(
        self, nodes: int, link_src: list[int], link_dst: list[int], link_medium: list[int], max_ties: int = MAX_TIES
    ) -> None:
        self._max_ties = max_ties
        self._medium = link_medium
        self._out: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
        self._in: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
        for link, (src, dst) in enumerate(zip(link_src, link_dst, strict=True)):
            self._out[src].append((dst, link))
            self._in[dst].append((src, link))
        self._hops_to: dict[int, NDArray[np.int64]] = {}
        self._hops_from: dict[int, NDArray[np.int64]] = {}
        self._paths: dict[tuple[int, int], tuple[Path, ...]] = {(n, n): (Path((n,), (), ()),) for n in range(nodes)}
        self._flat: dict[bytes, FlatPaths] = {}

    def hops_to(self, dst: int) -> NDArray[np.int64]:
        """Hops from every node to ``dst``; -1 where there is no way."""
        found = self._hops_to.get(dst)
        if found is None:
            found = self._hops_to[dst] = _hops(dst, self._in)
        return found

    def hops_from(self, src: int) -> NDArray[np.int64]:
        """Hops from ``src`` to every node; -1 where there is no way."""
        found = self._hops_from.get(src)
        if found is None:
            found = self._hops_from[src] = _hops(src, self._out)
        return found

    def between(self, src: int, dst: int) -> tuple[Path, ...]:
        """The hop-shortest paths from ``src`` to ``dst``, in a fixed order; empty where there is none."""
        found = self._paths.get((src, dst))
        if found is None:
            found = self._paths[src, dst] = self._enumerate(src, dst)
        return found

    def flat(self, nodes: NDArray[np.int64]) -> FlatPaths:
        """The paths between all ordered pairs of ``nodes``."""
        key = nodes.tobytes()
        found = self._flat.get(key)
        if found is None:
            if len(self._flat) >= KEPT_FLAT:
                self._flat.pop(next(iter(self._flat)))
            chosen = nodes.tolist()
            found = self._flat[key] = _flatten([self.between(a, b) for a in chosen for b in chosen])
        return found

    def warm(self) -> None:
        """Work out every pair now, so that no decision pays for it."""
        for src in range(len(self._out)):
            for dst in range(len(self._out)):
                self.between(src, dst)

    def _enumerate(self, src: int, dst: int) -> tuple[Path, ...]:
        hops = self.hops_to(dst).tolist()
        if hops[src] < 0:
            return ()
        paths: list[Path] = []
        # Depth first, one step nearer each time; reversed so that ties come out in the order of the links.
        stack: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((src,), ())]
        while stack and len(paths) < self._max_ties:
            nodes, links = stack.pop()
            here = nodes[-1]
            if here == dst:
                paths.append(Path(nodes, links, self._loads(links)))
                continue
            for node, link in reversed(self._out[here]):
                if hops[node] == hops[here] - 1:
                    stack.append(((*nodes, node), (*links, link)))
        return tuple(paths)

    def _loads(self, links: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        media = Counter(self._medium[link] for link in links if self._medium[link] >= 0)
        first = len(self._medium)
        return (*((link, 1) for link in links), *((first + medium, times) for medium, times in media.items()))


def _flatten(pairs: list[tuple[Path, ...]]) -> FlatPaths:
    paths = [path for pair in pairs for path in pair]
    loads = [load for path in paths for load in path.loads]
    return FlatPaths(
        pair_first=_first([len(pair) for pair in pairs]),
        path_first=_first([len(path.loads) for path in paths]),
        resource=np.array([resource for resource, _ in loads], dtype=np.int64),
        times=np.array([times for _, times in loads], dtype=np.float64),
    )


def _first(counts: list[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _hops(start: int, neighbours: list[list[tuple[int, int]]]) -> NDArray[np.int64]:
    hops = [-1] * len(neighbours)
    hops[start] = 0
    front = [start]
    distance = 0
    while front:
        distance += 1
        reached: list[int] = []
        for node in front:
            for other, _ in neighbours[node]:
                if hops[other] < 0:
                    hops[other] = distance
                    reached.append(other)
        front = reached
    array = np.array(hops, dtype=np.int64)
    array.setflags(write=False)
    return array
