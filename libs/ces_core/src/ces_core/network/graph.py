"""A topology's links as adjacency arrays for compiled code, with the hop counts found so far."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ces_core.model.topology import IntArray
from ces_core.network.hops import HopRows, Neighbours


class Network:
    """Structure and hop counts; the path tables of one topology share it."""

    def __init__(self, nodes: int, link_src: ArrayLike, link_dst: ArrayLike, link_medium: ArrayLike) -> None:
        """At most one link leads from one node to another; ``link_medium`` holds -1 for links without a medium."""
        self.nodes = nodes
        self.link_src, self.link_dst = np.asarray(link_src, dtype=np.int64), np.asarray(link_dst, dtype=np.int64)
        self.link_medium = np.array(link_medium, dtype=np.int64)  # a copy that is not read-only: a type of its own
        self.out = Neighbours.of(nodes, self.link_src, self.link_dst)
        self.into = Neighbours.of(nodes, self.link_dst, self.link_src)
        self.hops_to = HopRows(self.into.first, self.into.node)
        self.hops_from = HopRows(self.out.first, self.out.node)

    @cached_property
    def _ends(self) -> IntArray:
        """The links as sorted numbers, source * nodes + destination."""
        return np.unique(self.link_src * self.nodes + self.link_dst)

    def learn_from(self, earlier: Network) -> None:
        """Take over the hop counts that still hold. ``earlier`` has the same nodes, and other links."""
        if not (earlier.hops_to or earlier.hops_from):
            return
        gone_src, gone_dst = self._missing(earlier, self)
        new_src, new_dst = self._missing(self, earlier)
        self.hops_to.adopt(earlier.hops_to, self.out, np.unique(gone_src), (new_src, new_dst))
        self.hops_from.adopt(earlier.hops_from, self.into, np.unique(gone_dst), (new_dst, new_src))

    @staticmethod
    def _missing(here: Network, there: Network) -> tuple[IntArray, IntArray]:
        """The ends of the links that exist only in ``here``."""
        only = np.setdiff1d(here._ends, there._ends, assume_unique=True)
        return only // here.nodes, only % here.nodes
