"""What the network looks like, apart from what is used of it: nodes, directed links, shared media.

A topology outlives decisions: path tables hang on it, so that a new decision on the same network computes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ces_core.paths import PathTable

IntArray = NDArray[np.int64]


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
        return _remembered(tuple(nodes), tuple(links), tuple(media))

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

    @cached_property
    def paths(self) -> PathTable:
        """All hop-shortest paths, computed as they are asked for and then kept."""
        return PathTable(len(self.nodes), self.link_src.tolist(), self.link_dst.tolist(), self.link_medium.tolist())


def _grouped(ends: list[int], nodes: int) -> tuple[tuple[int, ...], ...]:
    groups: list[list[int]] = [[] for _ in range(nodes)]
    for link, node in enumerate(ends):
        groups[node].append(link)
    return tuple(tuple(group) for group in groups)


@lru_cache(maxsize=32)
def _remembered(
    nodes: tuple[str, ...], links: tuple[tuple[str, str, str | None], ...], media: tuple[str, ...]
) -> Topology:
    node_index = {name: i for i, name in enumerate(nodes)}
    medium_index: dict[str | None, int] = {name: i for i, name in enumerate(media)}
    medium_index[None] = -1

    def column(values: Iterable[int]) -> IntArray:
        array = np.fromiter(values, dtype=np.int64, count=len(links))
        array.setflags(write=False)
        return array

    return Topology(
        nodes=nodes,
        media=media,
        link_src=column(node_index[src] for src, _, _ in links),
        link_dst=column(node_index[dst] for _, dst, _ in links),
        link_medium=column(medium_index[medium] for _, _, medium in links),
    )
