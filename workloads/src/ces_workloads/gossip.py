"""Gossip learning: workers train by themselves and average their models in pairs, with nobody in the middle.

In each round the overlay's edges are drawn in random order, and each edge whose two ends are still free makes a pair
(:func:`pairs`). The two of a pair send each other their models and both go on with the mean: so the mean of all models
stays what it was and their variance falls. A worker waits for its partner of the round alone; there is no barrier,
and ranks may be rounds apart. All draw the same pairs from the seed, so that a run can be repeated bit by bit.

Nobody knows all models. Partners tell each other what they heard last of each worker's loss and accuracy; a worker
that has heard enough stops, tells its neighbours when they next meet it, and those stop too.

Hegedűs, Danner and Jelasity, "Gossip learning as a decentralized alternative to federated learning", DAIS 2019 (there a
worker sends and does not wait for an answer); pairwise averaging: Boyd, Ghosh, Prabhakar and Shah, "Randomized gossip
algorithms", IEEE Transactions on Information Theory, 2006.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ces_workloads import overlay
from ces_workloads.connections import Exchange
from ces_workloads.data import Dataset
from ces_workloads.model import as_bytes
from ces_workloads.overlay import MissingFlow
from ces_workloads.peers import Membership
from ces_workloads.replica import Learner, Settings
from ces_workloads.rounds import Outcome

# What is known of each worker, one row each: the round, its loss, and how many of its held-out images were right.
_ROUND, _LOSS, _CORRECT = range(3)


def pairs(edges: list[tuple[int, int]], seed: int, number: int) -> dict[int, int]:
    """The partner in round ``number`` of each rank that has one. No two ends of an edge are both without one."""
    partners: dict[int, int] = {}
    for index in np.random.default_rng([seed, number]).permutation(len(edges)):
        one, other = edges[index]
        if one not in partners and other not in partners:
            partners |= {one: other, other: one}
    return partners


class Gossip:
    """A worker and what it has heard of the others."""

    connections = staticmethod(overlay.gossip)

    def __init__(self, settings: Settings, data: Dataset, members: Membership, connections: Exchange) -> None:
        self._rank = members.rank
        self._seed = settings.seed
        self._held_out = len(data.test)
        self._connections = connections
        self._neighbours = [peer.rank for peer in overlay.gossip(members).sends]
        self._edges = whole_overlay(members, self._neighbours, connections)
        self._heard = np.zeros((members.world_size, 3))
        self.learner = Learner(settings, data, members.rank, members.world_size)
        self._arriving = np.empty_like(self.learner.parameters)

    def round(self, number: int) -> Outcome:
        """One batch, one partner. Until a worker was heard of, nothing is counted as right of its images."""
        loss = self.learner.step()
        partner = pairs(self._edges, self._seed, number).get(self._rank)
        over = partner is not None and not self.meet(partner)
        self._heard[self._rank] = number, loss, self.learner.count_correct()
        known = self._heard[self._heard[:, _ROUND] > 0]
        return Outcome(
            loss=float(known[:, _LOSS].mean()),
            accuracy=float(known[:, _CORRECT].sum()) / self._held_out,
            over=over,
        )

    def end(self) -> str:
        """Tell the neighbours not to wait at the next meeting."""
        self._connections.exchange({rank: _words(going_on=False, heard=self._heard) for rank in self._neighbours}, {})
        return self.learner.digest()

    def meet(self, partner: int) -> bool:
        """Exchange news with ``partner``, and average the models unless it has stopped; whether it has not."""
        answer = np.empty((len(self._heard) + 1, 3))
        self._connections.exchange(
            {partner: _words(going_on=True, heard=self._heard)}, {partner: as_bytes(answer.ravel())}
        )
        newer = answer[1:, _ROUND] > self._heard[:, _ROUND]
        self._heard[newer] = answer[1:][newer]
        if not answer[0, 0]:
            return False
        mean = self.learner.parameters
        self._connections.exchange({partner: as_bytes(mean)}, {partner: as_bytes(self._arriving)})
        mean += self._arriving
        mean *= np.float32(0.5)
        return True


def whole_overlay(members: Membership, neighbours: list[int], connections: Exchange) -> list[tuple[int, int]]:
    """All edges between workers, each known to its two ends at first; raises :class:`MissingFlow` for islands.

    News travels one edge a step, so that after n-1 steps everybody knows all that can be reached.
    """
    known = np.zeros((members.world_size, members.world_size), dtype=np.uint8)
    known[members.rank, neighbours] = 1
    for _ in range(members.world_size - 1):
        arriving = {rank: np.empty_like(known) for rank in neighbours}
        connections.exchange(
            {rank: known.ravel().data for rank in neighbours},
            {rank: matrix.ravel().data for rank, matrix in arriving.items()},
        )
        for matrix in arriving.values():
            known |= matrix
    unreached = [peer.task for peer in members.peers if peer.rank != members.rank and not known[peer.rank].any()]
    if unreached:
        raise MissingFlow(
            f"gossip learning needs flows that lead, over however many tasks, from {members.me.task} to all others, "
            f"but none lead to {', '.join(unreached)}; write `topology: gossip` under `flows` in the job file"
        )
    return [(int(one), int(other)) for one, other in zip(*np.nonzero(np.triu(known)), strict=True)]


def _words(going_on: bool, heard: NDArray[np.float64]) -> memoryview:
    """What one says first when meeting: whether it goes on, and what it knows of each worker."""
    return as_bytes(np.vstack([[float(going_on), 0.0, 0.0], heard]).ravel())
