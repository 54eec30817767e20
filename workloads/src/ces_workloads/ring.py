"""Ring all-reduce: which chunk moves when (pure), and the collective that carries it out over two neighbours.

Every worker sends to the next rank and receives from the previous one only. A vector is cut into as many
chunks as there are workers; in n-1 steps each chunk travels once round the ring and gathers its sum
(reduce-scatter), in n-1 more the sums travel round (all-gather). Each link carries 2(n-1)/n of the vector. One
worker computes the final sum of a chunk and all others copy it, so that every worker ends with the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from ces_workloads.model import Vector


class Neighbours(Protocol):
    """The two connections of a worker in a directed ring."""

    def exchange(self, outgoing: memoryview, incoming: memoryview) -> None:
        """Send all of ``outgoing`` to the next rank while ``incoming`` fills from the previous one."""


@dataclass(frozen=True)
class Step:
    """One step of a worker: the chunk it sends, the one it receives, and whether it adds or copies that."""

    send: int
    receive: int
    add: bool


def schedule(rank: int, world_size: int) -> list[Step]:
    """The 2(n-1) steps of one worker."""
    n = world_size
    reduce_scatter = [Step((rank - k) % n, (rank - k - 1) % n, add=True) for k in range(n - 1)]
    all_gather = [Step((rank + 1 - k) % n, (rank - k) % n, add=False) for k in range(n - 1)]
    return reduce_scatter + all_gather


def chunks(length: int, parts: int) -> list[slice]:
    """Cut ``length`` elements into ``parts`` neighbouring slices whose lengths differ by one at most."""
    edges = [length * part // parts for part in range(parts + 1)]
    return [slice(start, end) for start, end in pairwise(edges)]


class Ring:
    """The collectives of one worker."""

    def __init__(self, rank: int, world_size: int, neighbours: Neighbours) -> None:
        self._world_size = world_size
        self._rank = rank
        self._steps = schedule(rank, world_size)
        self._neighbours = neighbours

    def all_reduce(self, vector: Vector) -> None:
        """Replace ``vector`` (contiguous; same length and dtype everywhere) by the sum over all workers."""
        parts = [vector[part] for part in chunks(len(vector), self._world_size)]
        arriving = np.empty(max(len(part) for part in parts), dtype=vector.dtype)
        for step in self._steps:
            target = parts[step.receive]
            landing = arriving[: len(target)] if step.add else target
            self._neighbours.exchange(_as_bytes(parts[step.send]), _as_bytes(landing))
            if step.add:
                target += landing

    def all_gather(self, own: bytes) -> list[bytes]:
        """What each rank gave, by rank; ``own`` must have the same length at every worker."""
        gathered = [bytes(len(own))] * self._world_size
        gathered[self._rank] = own
        for distance in range(self._world_size - 1):
            arriving = bytearray(len(own))
            outgoing = gathered[(self._rank - distance) % self._world_size]
            self._neighbours.exchange(memoryview(outgoing), memoryview(arriving))
            gathered[(self._rank - distance - 1) % self._world_size] = bytes(arriving)
        return gathered


def _as_bytes(part: Vector) -> memoryview:
    return part.view(np.uint8).data
