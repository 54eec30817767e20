"""The topology of a network: nodes, directed links and shared media, without their use.

A topology outlives decisions and carries its path tables, so that later decisions on the same network reuse them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from ces_core.model.lru import LruCache

IntArray = NDArray[np.int64]

REMEMBERED = 400_000
"""Limit on the nodes and links of all remembered topologies: four with 10,000 nodes and 80,000 links."""
REMEMBERED_LEAST = 10_000
"""The least size that a topology counts for."""


@dataclass(frozen=True, eq=False)
class Topology:
    """Structure only, as indices. Make one with :meth:`of`; equal structure gives the same object."""

    nodes: tuple[str, ...]
    media: tuple[str, ...]
    link_src: IntArray
    link_dst: IntArray
    link_medium: IntArray  # -1: none
    derived: dict[Any, Any] = field(default_factory=dict, repr=False)
    """What other modules computed from the structure, kept as long as it; see :mod:`ces_core.network.cache`."""
    predecessor: ref[Topology] | None = None
    """The most recently used topology with the same nodes when this one was made, such as before a link failed."""

    @staticmethod
    def of(
        nodes: tuple[str, ...], media: tuple[str, ...], link_src: IntArray, link_dst: IntArray, link_medium: IntArray
    ) -> Topology:
        """The topology of these links, given as indices (int64) of nodes and media; the arrays become read-only.

        Indices must be known, and links unique; :meth:`ces_core.model.problem.Cluster.make` validates them. Topologies
        are remembered by value, as bytes: this is cheap at any size. A new one takes over path data from the latest one
        with the same nodes, as after a link failure.
        """
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
                object.__setattr__(made, "predecessor", ref(earlier))
                break
        _REMEMBERED.put(key, made, REMEMBERED_LEAST + len(nodes) + len(link_src))
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by structure alone: a process that loads it gets its own remembered topology."""
        return Topology.of, (self.nodes, self.media, self.link_src, self.link_dst, self.link_medium)

    @cached_property
    def node_index(self) -> Mapping[str, int]:
        return MappingProxyType({name: i for i, name in enumerate(self.nodes)})

    @cached_property
    def link_index(self) -> Mapping[tuple[int, int], int]:
        ends = zip(self.link_src.tolist(), self.link_dst.tolist(), strict=True)
        return MappingProxyType({end: i for i, end in enumerate(ends)})

    @cached_property
    def links_from(self) -> tuple[tuple[int, ...], ...]:
        """Per node, its outgoing links."""
        return _grouped(self.link_src.tolist(), len(self.nodes))

    @cached_property
    def links_to(self) -> tuple[tuple[int, ...], ...]:
        """Per node, its incoming links."""
        return _grouped(self.link_dst.tolist(), len(self.nodes))


def _grouped(ends: list[int], nodes: int) -> tuple[tuple[int, ...], ...]:
    groups: list[list[int]] = [[] for _ in range(nodes)]
    for link, node in enumerate(ends):
        groups[node].append(link)
    return tuple(tuple(group) for group in groups)


_REMEMBERED: LruCache[tuple[object, ...], Topology] = LruCache(REMEMBERED)
