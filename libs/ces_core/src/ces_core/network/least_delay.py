"""The K simple paths with the least delay between pairs of nodes: the path with the fewest hops may be a slow one.

Found by networkx (J. Y. Yen, "Finding the K shortest loopless paths in a network", Management Science 17, 1971). The
order is by delay, then by hops, then by links.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ces_core.model.topology import IntArray, Topology
from ces_core.network.graph import Network
from ces_core.network.path_table import PathTable
from ces_core.network.shortest_paths import FlatPaths

ROUNDING = 1e-12
"""Relative: sums of delays that differ by less are alike."""
MAX_TIES = 64
"""At most this many paths beyond the K are looked at to put those of equal delay in order."""


class LeastDelayPaths(PathTable):
    """The table for one topology with the delays (ms) of its links."""

    def __init__(self, network: Network, topology: Topology, delays: NDArray[np.float64], k: int) -> None:
        super().__init__(network, k=k)
        self._least = k
        self._medium_of: list[int] = topology.link_medium.tolist()
        self._links = len(delays)
        self._delays: list[float] = delays.tolist()
        self._graph = nx.DiGraph()
        self._graph.add_nodes_from(range(len(topology.nodes)))
        ends = zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True)
        for link, (src, dst) in enumerate(ends):
            self._graph.add_edge(src, dst, link=link, delay=self._delays[link])

    def _walk(self, ends: list[int], src: Sequence[int] | IntArray, row_of: Sequence[int] | IntArray) -> FlatPaths:
        pair_first, path_first, resource, times = [0], [0], [], []
        for begin, row in zip(np.asarray(src).tolist(), np.asarray(row_of).tolist(), strict=True):
            for links in self._ways(begin, ends[row]):
                loads: dict[int, float] = dict.fromkeys(links, 1.0)
                for link in links:
                    medium = self._medium_of[link]
                    if medium >= 0:
                        loads[self._links + medium] = loads.get(self._links + medium, 0.0) + 1.0
                resource += list(loads)
                times += list(loads.values())
                path_first.append(len(resource))
            pair_first.append(len(path_first) - 1)
        return FlatPaths(
            np.array(pair_first, dtype=np.int64),
            np.array(path_first, dtype=np.int64),
            np.array(resource, dtype=np.int64),
            np.array(times, dtype=np.float64),
            np.zeros(len(pair_first) - 1, dtype=np.bool_),
        )

    def _ways(self, src: int, dst: int) -> list[list[int]]:
        """The links of each path."""
        if src == dst:
            return [[]]
        found: list[tuple[float, list[int]]] = []
        worst = math.inf
        for links in self._rising(src, dst):
            delay = math.fsum(self._delays[link] for link in links)
            if len(found) >= self._least + MAX_TIES or delay > worst * (1 + ROUNDING):
                break
            found.append((delay, links))
            if len(found) == self._least:
                worst = delay
        found.sort(key=lambda each: (float(f"{each[0]:.12e}"), len(each[1]), each[1]))
        return [links for _, links in found[: self._least]]

    def _rising(self, src: int, dst: int) -> Iterator[list[int]]:
        try:
            for nodes in nx.shortest_simple_paths(self._graph, src, dst, weight="delay"):
                yield [self._graph.edges[hop]["link"] for hop in pairwise(nodes)]
        except nx.NetworkXNoPath:
            return
