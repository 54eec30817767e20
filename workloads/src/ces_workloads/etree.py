"""E-Tree learning: workers train by themselves and average their models along a tree.

Each subtree below the root is a cluster. After every step the cluster's workers send their models up to its head,
which is a worker like them, and get the mean back; after every ``ROOT_EVERY`` steps the mean is carried on to the
root, and all workers get that of everybody. A parent waits for its children, weighs every model by the images that
it saw, and sends the mean down. Five workers in a binary tree are three levels: devices, a head, the root.

A round is ``ROOT_EVERY`` steps, so that after each round all workers have the same model, whose accuracy is
measured. How often which level averages is open in the paper as in the thesis; two is the choice made here.
Devices are clustered by the job's flows, not by the paper's K-means over data and distance.

Yang et al., "E-Tree learning: a novel decentralized model learning framework for edge AI", arXiv:2008.01553.
"""

from __future__ import annotations

import numpy as np

from ces_workloads import overlay
from ces_workloads.connections import Exchange
from ces_workloads.data import Dataset
from ces_workloads.model import Vector, as_bytes
from ces_workloads.peers import Membership
from ces_workloads.replica import Learner, Settings
from ces_workloads.rounds import Outcome

ROOT_EVERY = 2
_ROOT = 0


class ETree:
    """A worker's place in the tree. The root's own cluster is itself alone."""

    connections = staticmethod(overlay.tree)

    def __init__(
        self,
        settings: Settings,
        data: Dataset,
        members: Membership,
        connections: Exchange,
        root_every: int = ROOT_EVERY,
    ) -> None:
        neighbours = [peer.rank for peer in overlay.tree(members).sends]
        self._rank, self._world_size = members.rank, members.world_size
        self._parent = None if members.rank == _ROOT else neighbours[0]
        self._children = [rank for rank in neighbours if rank > members.rank]
        self._held_out = len(data.test)
        self._root_every = root_every
        self._connections = connections
        self.learner = Learner(settings, data, members.rank, members.world_size)
        self._arriving = {rank: np.empty_like(self.learner.parameters) for rank in self._children}
        self._images = self._subtree_images()

    def round(self, number: int) -> Outcome:
        losses = 0.0
        for step in range(1, self._root_every + 1):
            losses += self.learner.step()
            self.average(with_root=step == self._root_every)
        totals = np.array([losses / self._root_every, self.learner.count_correct()], dtype=np.float64)
        self._add_up(totals)
        return Outcome(loss=float(totals[0]) / self._world_size, accuracy=float(totals[1]) / self._held_out)

    def end(self) -> str:
        return self.learner.digest()

    def average(self, with_root: bool) -> None:
        """Replace the model by the mean of all workers' models, or of those of the own cluster."""
        if self._rank == _ROOT and not with_root:
            return
        models = {self._rank: self.learner.parameters, **self._arriving}
        self._connections.exchange({}, {rank: as_bytes(models[rank]) for rank in self._children})
        seen = sum(self._images.values())
        mean = self.learner.parameters
        for rank, model in models.items():  # always in this order: sums of rounded numbers depend on it
            model *= np.float32(self._images[rank] / seen)
            if rank != self._rank:
                mean += model
        self._through_parent(mean, ask=with_root or self._parent != _ROOT)

    def _add_up(self, vector: Vector) -> None:
        """Replace ``vector`` by the sum over all workers."""
        parts = {rank: np.empty_like(vector) for rank in self._children}
        self._connections.exchange({}, {rank: as_bytes(part) for rank, part in parts.items()})
        for part in parts.values():
            vector += part
        self._through_parent(vector, ask=True)

    def _through_parent(self, vector: Vector, ask: bool) -> None:
        """Give ``vector`` to the parent if it is to be asked, put its answer in its place, and send that down."""
        if ask and self._parent is not None:
            self._connections.exchange({self._parent: as_bytes(vector)}, {})
            self._connections.exchange({}, {self._parent: as_bytes(vector)})
        self._connections.exchange({rank: as_bytes(vector) for rank in self._children}, {})

    def _subtree_images(self) -> dict[int, int]:
        """How many images are trained on at this worker, and in the subtree of each child."""
        counts = {rank: np.empty(1, dtype=np.int64) for rank in self._children}
        self._connections.exchange({}, {rank: count.view(np.uint8).data for rank, count in counts.items()})
        images = {self._rank: self.learner.images, **{rank: int(count[0]) for rank, count in counts.items()}}
        if self._parent is not None:
            total = np.array([sum(images.values())], dtype=np.int64)
            self._connections.exchange({self._parent: total.view(np.uint8).data}, {})
        return images
