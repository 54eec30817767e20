"""What the network looks like, apart from what is used of it: nodes, directed links, shared media.

A topology outlives decisions: path tables hang on it, so that a new decision on the same network computes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ces_core.paths import Network, PathTable
from ces_core.paths.kept import Kept
from ces_core.paths.neighbours import Neighbours

IntArray = NDArray[np.int64]

REMEMBERED = 400_000
"""So many nodes and links of topologies are remembered in all: four topologies of 10,000 nodes and 80,000 links."""
REMEMBERED_LEAST = 10_000
"""What a small topology counts for."""


@dataclass(frozen=True, eq=False)
class Topology:
    """Structure only, indices everywhere. Make one with :meth:`of`; equal structure gives the same object."""

    nodes: tuple[str, ...]
    media: tuple[str, ...]
    link_src: IntArray
    link_dst: IntArray
    link_medium: IntArray  # -1: none

    @staticmethod
    def of(nodes: Iterable[str], links: Iterable[tuple[str, str, str | None]], media: Iterable[str] = ()) -> Topology:
        """The topology with these nodes, links ``(src, dst, medium or None)`` and media.

        Names must be known and unique; :meth:`ces_core.problem.Cluster.make` is where that is checked.
        """
        nodes, links, media = tuple(nodes), tuple(links), tuple(media)
        node_index = {name: i for i, name in enumerate(nodes)}
        medium_index: dict[str | None, int] = {name: i for i, name in enumerate(media)} | {None: -1}

        def column(values: Iterable[int]) -> IntArray:
            return np.fromiter(values, dtype=np.int64, count=len(links))

        return Topology.of_indices(
            nodes,
            media,
            column(node_index[src] for src, _, _ in links),
            column(node_index[dst] for _, dst, _ in links),
            column(medium_index[medium] for _, _, medium in links),
        )

    @staticmethod
    def of_indices(
        nodes: tuple[str, ...], media: tuple[str, ...], link_src: IntArray, link_dst: IntArray, link_medium: IntArray
    ) -> Topology:
        """The same from indices (int64), which become read-only. Remembered by value, as bytes: that is cheap at any
        size. A topology not seen before learns from the latest one with the same nodes, as where a link fails."""
        columns = (link_src, link_dst, link_medium)
        key = (nodes, media, *(column.tobytes() for column in columns))
        found = _REMEMBERED.get(key)
        if found is not None:
            return found
        for column in columns:
            column.setflags(write=False)
        made = Topology(nodes, media, *columns)
        for (names, *_), earlier in _REMEMBERED.newest_first():
            if names == nodes:
                if "_network" in vars(earlier):
                    made._network.learn_from(earlier._network)
                break
        _REMEMBERED.put(key, made, REMEMBERED_LEAST + len(nodes) + len(link_src))
        return made

    @cached_property
    def node_index(self) -> Mapping[str, int]:
        return MappingProxyType({name: i for i, name in enumerate(self.nodes)})

    @cached_property
    def link_index(self) -> Mapping[tuple[int, int], int]:
        ends = zip(self.link_src.tolist(), self.link_dst.tolist(), strict=True)
        return MappingProxyType({end: i for i, end in enumerate(ends)})

    @cached_property
    def links_from(self) -> tuple[tuple[int, ...], ...]:
        """Per node, the links that leave it."""
        return _grouped(self.link_src.tolist(), len(self.nodes))

    @cached_property
    def links_to(self) -> tuple[tuple[int, ...], ...]:
        """Per node, the links that enter it."""
        return _grouped(self.link_dst.tolist(), len(self.nodes))

    @property
    def ahead(self) -> Neighbours:
        """Per node those that links lead to, for compiled code."""
        return self._network.out

    @property
    def behind(self) -> Neighbours:
        """And those that links come from."""
        return self._network.into

    @cached_property
    def paths(self) -> PathTable:
        """All hop-shortest paths, computed as they are asked for and then kept."""
        return self.routes(None)

    def routes(self, k: int | None) -> PathTable:
        """The hop-shortest paths (None) or the ``k`` shortest simple paths, likewise."""
        found = self._tables.get(k)
        if found is None:
            found = self._tables[k] = PathTable(self._network, k=k)
        return found

    @cached_property
    def _network(self) -> Network:
        return Network(len(self.nodes), self.link_src, self.link_dst, self.link_medium)

    @cached_property
    def _tables(self) -> dict[int | None, PathTable]:
        return {}


def _grouped(ends: list[int], nodes: int) -> tuple[tuple[int, ...], ...]:
    groups: list[list[int]] = [[] for _ in range(nodes)]
    for link, node in enumerate(ends):
        groups[node].append(link)
    return tuple(tuple(group) for group in groups)


_REMEMBERED: Kept[tuple[object, ...], Topology] = Kept(REMEMBERED)
