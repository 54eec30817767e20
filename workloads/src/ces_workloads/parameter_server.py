"""Parameter server: rank 0 keeps the model and trains on nothing, all others compute gradients for it.

Synchronous: a round takes one gradient from every worker, makes one step with their mean, and gives the new
parameters back. Batches are equally large, so that the plain mean is the mean over all images of the round. The
server sends and receives as many models a round as there are workers: its links are what limits.

Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014.
"""

from __future__ import annotations

import numpy as np

from ces_workloads import overlay
from ces_workloads.connections import Exchange
from ces_workloads.data import Dataset
from ces_workloads.model import as_bytes
from ces_workloads.peers import Membership
from ces_workloads.replica import Learner, Replica, Settings
from ces_workloads.rounds import Outcome

_SERVER = 0


class Server:
    """The part of rank 0."""

    def __init__(self, settings: Settings, data: Dataset, members: Membership, connections: Exchange) -> None:
        self._workers = range(1, members.world_size)
        self._held_out = len(data.test)
        self._connections = connections
        self._replica = Replica(settings, data)
        self._gradients = {rank: np.empty_like(self._replica.parameters) for rank in self._workers}
        self._reports = {rank: np.empty(2, dtype=np.float64) for rank in self._workers}

    def round(self, number: int) -> Outcome:
        self._connections.exchange({}, {rank: as_bytes(gradient) for rank, gradient in self._gradients.items()})
        mean = self._gradients[1].copy()
        for rank in self._workers[1:]:  # always in this order: sums of rounded numbers depend on it
            mean += self._gradients[rank]
        mean /= np.float32(len(self._workers))
        self._replica.update(mean)
        self._connections.exchange({rank: as_bytes(self._replica.parameters) for rank in self._workers}, {})

        self._connections.exchange({}, {rank: as_bytes(report) for rank, report in self._reports.items()})
        losses, correct = np.sum(list(self._reports.values()), axis=0)
        totals = np.array([losses / len(self._workers), correct / self._held_out])
        self._connections.exchange({rank: as_bytes(totals) for rank in self._workers}, {})
        return Outcome(loss=float(totals[0]), accuracy=float(totals[1]))

    def end(self) -> str:
        return self._replica.digest()


class Worker:
    """The part of all other ranks, among which the images are shared out."""

    def __init__(self, settings: Settings, data: Dataset, members: Membership, connections: Exchange) -> None:
        self._connections = connections
        self._learner = Learner(settings, data, members.rank - 1, members.world_size - 1)

    def round(self, number: int) -> Outcome:
        loss, gradient = self._learner.gradient()
        self._connections.exchange({_SERVER: as_bytes(gradient)}, {_SERVER: as_bytes(self._learner.parameters)})
        report = np.array([loss, self._learner.count_correct()], dtype=np.float64)
        totals = np.empty_like(report)
        self._connections.exchange({_SERVER: as_bytes(report)}, {_SERVER: as_bytes(totals)})
        return Outcome(loss=float(totals[0]), accuracy=float(totals[1]))

    def end(self) -> str:
        return self._learner.digest()


class ParameterServer:
    """Server or worker, as the rank says."""

    connections = staticmethod(overlay.star)

    def __init__(self, settings: Settings, data: Dataset, members: Membership, connections: Exchange) -> None:
        part = Server if members.rank == _SERVER else Worker
        self._part: Server | Worker = part(settings, data, members, connections)

    def round(self, number: int) -> Outcome:
        return self._part.round(number)

    def end(self) -> str:
        return self._part.end()
