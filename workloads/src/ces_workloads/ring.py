"""Ring all-reduce: which chunk moves when (pure), the collective that carries it out, and training with it.

Every worker sends to the next rank and receives from the previous one only. A vector is cut into as many
chunks as there are workers; in n-1 steps each chunk travels once round the ring and gathers its sum
(reduce-scatter), in n-1 more the sums travel round (all-gather). Each link carries 2(n-1)/n of the vector. One
worker computes the final sum of a chunk and all others copy it, so that every worker ends with the same bits.

Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ces_workloads import overlay
from ces_workloads.connections import Exchange
from ces_workloads.data import Dataset
from ces_workloads.model import Vector, as_bytes
from ces_workloads.peers import Membership
from ces_workloads.replica import Learner, Settings
from ces_workloads.rounds import Outcome, TrainingFailed


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

    def __init__(self, rank: int, world_size: int, connections: Exchange) -> None:
        self._world_size = world_size
        self._rank = rank
        self._next, self._previous = (rank + 1) % world_size, (rank - 1) % world_size
        self._steps = schedule(rank, world_size)
        self._connections = connections

    def all_reduce(self, vector: Vector) -> None:
        """Replace ``vector`` (contiguous; same length and dtype everywhere) by the sum over all workers."""
        parts = [vector[part] for part in chunks(len(vector), self._world_size)]
        arriving = np.empty(max(len(part) for part in parts), dtype=vector.dtype)
        for step in self._steps:
            target = parts[step.receive]
            landing = arriving[: len(target)] if step.add else target
            self._exchange(as_bytes(parts[step.send]), as_bytes(landing))
            if step.add:
                target += landing

    def all_gather(self, own: bytes) -> list[bytes]:
        """What each rank gave, by rank; ``own`` must have the same length at every worker."""
        gathered = [bytes(len(own))] * self._world_size
        gathered[self._rank] = own
        for distance in range(self._world_size - 1):
            arriving = bytearray(len(own))
            outgoing = gathered[(self._rank - distance) % self._world_size]
            self._exchange(memoryview(outgoing), memoryview(arriving))
            gathered[(self._rank - distance - 1) % self._world_size] = bytes(arriving)
        return gathered

    def _exchange(self, outgoing: memoryview, incoming: memoryview) -> None:
        self._connections.exchange({self._next: outgoing}, {self._previous: incoming})


class RingTraining:
    """Each round averages the gradients of all workers, and each worker makes the same step with the mean."""

    connections = staticmethod(overlay.ring)

    def __init__(self, settings: Settings, data: Dataset, members: Membership, connections: Exchange) -> None:
        self._world_size = members.world_size
        self._rank = members.rank
        self._held_out = len(data.test)
        self._ring = Ring(members.rank, members.world_size, connections)
        self._learner = Learner(settings, data, members.rank, members.world_size)

    def round(self, number: int) -> Outcome:
        """One batch at every worker. Accuracy is counted in parts: all workers see one number and stop together."""
        loss, gradient = self._learner.gradient()
        self._ring.all_reduce(gradient)
        gradient /= np.float32(self._world_size)
        self._learner.update(gradient)
        totals = np.array([loss, self._learner.count_correct()], dtype=np.float64)
        self._ring.all_reduce(totals)
        return Outcome(loss=float(totals[0]) / self._world_size, accuracy=float(totals[1]) / self._held_out)

    def end(self) -> str:
        return agreed_digest(self._ring, self._learner.digest(), self._rank)


def agreed_digest(ring: Ring, digest: str, rank: int) -> str:
    """The digest, once all ranks have the same; raises :class:`TrainingFailed` if not."""
    others = [other for other, theirs in enumerate(ring.all_gather(digest.encode())) if theirs != digest.encode()]
    if others:
        raise TrainingFailed(f"the replicas differ: the parameters of ranks {others} are not those of rank {rank}")
    return digest
