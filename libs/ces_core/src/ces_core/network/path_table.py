"""The paths of one topology, computed on demand; caching never changes an answer.

It matters which of the equally short paths a flow takes, so all are kept, up to a limit. A decision needs few of the
P^2 pairs, and later decisions find their paths ready.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ces_core.model.lru import LruCache
from ces_core.model.path import Path
from ces_core.model.topology import IntArray
from ces_core.network.graph import Network
from ces_core.network.hops import HopRow, Neighbours, plain
from ces_core.network.shortest_paths import FlatPaths, shortest_walks
from ces_core.network.simple_paths import PATIENCE, simple_walks

MAX_TIES = 32
"""At most this many equally short paths are kept per ordered pair."""
KEPT_FLAT = 64 << 20
"""Bytes of flat paths kept, for the latest choices of nodes."""
MOST_NODES = 2000
"""Flat paths between more nodes than this would fill gigabytes."""
KEPT_PATHS = 100_000
"""Path objects kept: all of a hundred nodes with some ten ties per pair."""
WARM_PAIRS = 10_000
"""Warming makes path objects for up to this many pairs."""
WARM_STEPS = 200_000_000
"""Warming computes hop rows if this takes no more than this many link visits: about a second."""


class PathTable:
    """All hop-shortest paths of a network (``k`` None), or the ``k`` shortest simple paths of every pair, by hops.

    Hop-shortest paths come depth first by rising link, at most ``most`` per pair; simple paths come by length and then
    likewise.
    """

    def __init__(self, network: Network, *, k: int | None = None, most: int = MAX_TIES) -> None:
        self._network = network
        self._k, self._most = k, most
        self._link_dst: list[int] = network.link_dst.tolist()
        self._medium = plain(network.link_medium)
        self._out, self._into = (Neighbours(*[plain(each) for each in side]) for side in (network.out, network.into))
        self._between: LruCache[tuple[int, int], tuple[Path, ...]] = LruCache(KEPT_PATHS)
        self._flat: LruCache[bytes, FlatPaths] = LruCache(KEPT_FLAT)

    def hops_to(self, dst: int) -> HopRow:
        """Hops from every node to ``dst``; -1 if there is no path."""
        return self._network.hops_to.row(dst)

    def hops_from(self, src: int) -> HopRow:
        """Hops from ``src`` to every node; -1 if there is no path."""
        return self._network.hops_from.row(src)

    def between(self, src: int, dst: int) -> tuple[Path, ...]:
        """The paths from ``src`` to ``dst``, in a fixed order; empty if there are none."""
        if src == dst:
            return (Path((src,), (), ()),)
        found = self._between.get((src, dst))
        if found is None:
            found = self._paths([src], [dst], self._walk([dst], [src], [0]))[0]
        return found

    def flat(self, nodes: NDArray[np.int64]) -> FlatPaths:
        """The paths between all ordered pairs of ``nodes``, which should be a selection in a large network.

        Raises ValueError for more than ``MOST_NODES``.
        """
        if len(nodes) > MOST_NODES:
            raise ValueError(f"paths between {len(nodes)} nodes are too many: choose at most {MOST_NODES} of them")
        key = nodes.tobytes()
        found = self._flat.get(key)
        if found is None:
            count = len(nodes)
            found = self._walk(nodes.tolist(), np.repeat(nodes, count), np.tile(np.arange(count), count))
            self._flat.put(key, found, found.size())
        return found

    def wider(self, most: int) -> PathTable:
        """A table of the same network that keeps up to ``most`` equally short paths per pair."""
        return PathTable(self._network, k=self._k, most=most)

    def truncated(self, nodes: NDArray[np.int64]) -> bool:
        """Whether some pair of ``nodes`` has more shortest paths than are kept, so that results over the kept ones
        prove nothing about all. Never for the K shortest, which are complete by definition: for them no path is sought,
        since all pairs can take minutes."""
        if self._k is not None:
            return False
        return bool(self.flat(nodes).truncated.any())

    def warm(self) -> None:
        """Compute ahead what decisions will ask for, as far as that takes about a second: all pairs of a small network,
        hop counts of a larger one, nothing for many thousand nodes. Also compiles the code."""
        network = self._network
        nodes = network.nodes
        if nodes * (nodes + len(network.link_src)) <= WARM_STEPS:
            for rows in (network.hops_to, network.hops_from):
                rows.rows(range(min(nodes, rows.most)))
        if nodes * nodes <= WARM_PAIRS:
            chosen = list(range(nodes))
            flat = self.flat(np.array(chosen, dtype=np.int64))
            self._paths([src for src in chosen for _ in chosen], chosen * nodes, flat)
        # Whatever the size: what is compiled on first use is compiled now.
        before, after = Network(2, [0], [1], [-1]), Network(2, [0, 1], [1, 0], [-1, -1])
        PathTable(before, k=self._k).flat(np.arange(2))
        after.learn_from(before)

    def _walk(self, ends: list[int], src: Sequence[int] | IntArray, row_of: Sequence[int] | IntArray) -> FlatPaths:
        """The paths from ``src[p]`` to ``ends[row_of[p]]``."""
        rows = plain(self._network.hops_to.block(ends))
        stops, starts, of = (plain(np.asarray(values, dtype=np.int64)) for values in (ends, src, row_of))
        pairs = (rows, stops, starts, of)
        if self._k is None:
            flat = shortest_walks(self._out, self._into, self._medium, *pairs, self._most)
        else:
            flat = simple_walks(self._out, self._into, self._medium, *pairs, self._k, PATIENCE)
        return FlatPaths(*flat)

    def _paths(self, sources: list[int], targets: list[int], flat: FlatPaths) -> list[tuple[Path, ...]]:
        """The pairs' paths as objects, kept."""
        ahead = self._link_dst
        path_first, resource, times = flat.path_first.tolist(), flat.resource.tolist(), flat.times.astype(int).tolist()
        pair_first = flat.pair_first.tolist()
        answers = []
        for p, (src, dst) in enumerate(zip(sources, targets, strict=True)):
            paths = []
            for q in range(pair_first[p], pair_first[p + 1]):
                part = slice(path_first[q], path_first[q + 1])
                loads = tuple(zip(resource[part], times[part], strict=True))
                via = tuple([r for r, _ in loads if r < len(ahead)])
                paths.append(Path((src, *[ahead[i] for i in via]), via, loads))
            answers.append(tuple(paths))
            self._between.put((src, dst), answers[-1], 1 + len(paths))
        return answers
