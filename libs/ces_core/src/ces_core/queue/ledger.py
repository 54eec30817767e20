"""The capacity that running jobs hold, job by job."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ces_core.model.cards import Cards
from ces_core.model.plan import Plan
from ces_core.model.problem import Cluster, FloatArray, Problem

TOLERANCE = 1e-9
"""Relative tolerance for rounding."""
Cell = tuple[int, int]
"""(resource, node), (LINK, link), or of a card."""
LINK = -1
CARD, CARD_MEMORY = -2, -3
"""(CARD, card): thousandths of it, and (CARD_MEMORY, card): bytes, where the cluster's cards are known."""


class OverCapacityError(ValueError):
    """A plan asks for more than is free."""


@dataclass
class _Use:
    """Use of one cell: what was there before the first job, and what each job holds."""

    base: float
    held: dict[str, float]

    @property
    def total(self) -> float:
        return math.fsum((self.base, *self.held.values()))


class Ledger:
    """Holds and releases jobs on one cluster; the topology and its path tables are never rebuilt.

    Sums are taken over current holdings instead of being added up and down, so that the last release leaves exactly
    what was there before the first job.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._base = self._cluster = cluster
        self._uses: dict[Cell, _Use] = {}
        self._held: dict[str, Mapping[Cell, float]] = {}
        self._node_used, self._link_used = cluster.node_used.copy(), cluster.link_used.copy()
        self._card_used = None if cluster.cards is None else cluster.cards.used.copy()

    @staticmethod
    def of(cluster: Cluster, held: Mapping[str, Mapping[Cell, float]]) -> Ledger:
        """A ledger of existing holdings, accepted even beyond capacity: a capacity may have shrunk."""
        ledger = Ledger(cluster)
        uses = ledger._uses
        for job, cells in held.items():
            for cell, amount in cells.items():
                use = uses.get(cell)
                if use is None:
                    use = ledger._use(cell)
                use.held[job] = amount
            ledger._held[job] = cells
        ledger._renew(ledger._uses)
        return ledger

    @property
    def cluster(self) -> Cluster:
        """The cluster with current use: a value that later changes do not touch."""
        return self._cluster

    @property
    def base(self) -> Cluster:
        """The cluster as it was before the first job."""
        return self._base

    @property
    def jobs(self) -> tuple[str, ...]:
        return tuple(self._held)

    def held(self, job: str) -> Mapping[Cell, float]:
        """What the job holds. Raises KeyError if it holds nothing."""
        return self._held[job]

    def copy(self) -> Ledger:
        """An independent copy with the same holdings."""
        other = Ledger(self._base)
        other._cluster = self._cluster
        other._uses = {cell: _Use(use.base, dict(use.held)) for cell, use in self._uses.items()}
        other._held = dict(self._held)
        other._node_used, other._link_used = self._node_used.copy(), self._link_used.copy()
        other._card_used = None if self._card_used is None else self._card_used.copy()
        return other

    def hold(self, job: str, problem: Problem, plan: Plan) -> None:
        """Take what the plan gives its tasks and flows, all or nothing.

        Raises OverCapacityError if something is too scarce, ValueError if the job already holds something.
        """
        if job in self._held:
            raise ValueError(f"{job} already holds a place")
        wanted = cells_of(problem, plan, self._base.cards)
        for cell, amount in wanted.items():
            capacity, used = self._capacity(cell), self._use(cell).total
            if used + amount > capacity * (1 + TOLERANCE):
                raise OverCapacityError(f"{job}: {self._name(cell)} would hold {used + amount} of {capacity}")
        self._check_media(job, wanted)
        for cell, amount in wanted.items():
            self._use(cell).held[job] = amount
        self._held[job] = wanted
        self._renew(wanted)

    def release(self, job: str) -> None:
        """Give back what the job holds. Raises KeyError if it holds nothing."""
        cells = self._held.pop(job)
        for cell in cells:
            del self._uses[cell].held[job]
        self._renew(cells)

    def _use(self, cell: Cell) -> _Use:
        found = self._uses.get(cell)
        if found is None:
            resource, index = cell
            if resource == LINK:
                base = self._link_used[index]
            else:
                base = self._node_used[cell] if resource >= 0 else self._cards_used()[CARD - resource, index]
            found = self._uses[cell] = _Use(float(base), {})
        return found

    def _capacity(self, cell: Cell) -> float:
        resource, index = cell
        if resource <= CARD:
            assert self._cluster.cards is not None
            return float(self._cluster.cards.capacity[CARD - resource, index])
        return float(self._cluster.link_capacity[index] if resource == LINK else self._cluster.node_capacity[cell])

    def _cards_used(self) -> FloatArray:
        assert self._card_used is not None, "the cluster's cards are not known"
        return self._card_used

    def _name(self, cell: Cell) -> str:
        resource, index = cell
        topology, cards = self._cluster.topology, self._cluster.cards
        if resource <= CARD and cards is not None:
            node, card = next(place for place, column in cards.column.items() if column == index)
            return f"card {card} of node {node}"
        if resource != LINK:
            return f"node {topology.nodes[index]}"
        return f"link {topology.nodes[topology.link_src[index]]} -> {topology.nodes[topology.link_dst[index]]}"

    def _check_media(self, job: str, wanted: Mapping[Cell, float]) -> None:
        more = np.zeros(len(self._cluster.medium_capacity))
        for (resource, index), amount in wanted.items():
            if resource == LINK and self._cluster.topology.link_medium[index] >= 0:
                more[self._cluster.topology.link_medium[index]] += amount
        total, capacity = self._cluster.medium_used + more, self._cluster.medium_capacity
        for medium in np.flatnonzero((more > 0) & (total > capacity * (1 + TOLERANCE))).tolist():
            name = self._cluster.topology.media[medium]
            raise OverCapacityError(f"{job}: medium {name} would carry {total[medium]} of {capacity[medium]}")

    def _renew(self, cells: Iterable[Cell]) -> None:
        for cell in cells:
            resource, index = cell
            if resource == LINK:
                self._link_used[index] = self._uses[cell].total
            elif resource >= 0:
                self._node_used[cell] = self._uses[cell].total
            else:
                self._cards_used()[CARD - resource, index] = self._uses[cell].total
        cards = None if self._card_used is None else self._card_used.copy()
        self._cluster = self._cluster.with_used(self._node_used.copy(), self._link_used.copy(), cards)


def cells_of(problem: Problem, plan: Plan, cards: Cards | None = None) -> dict[Cell, float]:
    """What a plan takes of each node and link, and of each card that it names, if ``cards`` are known. Raises KeyError
    where one is not there."""
    topology = problem.cluster.topology
    found: dict[Cell, float] = {}
    for t, task in enumerate(problem.tasks):
        node = topology.node_index[plan.assignments[task.name]]
        for resource, amount in enumerate(problem.demand[t].tolist()):
            if amount:
                found[resource, node] = found.get((resource, node), 0.0) + amount
    for flow in plan.flows:
        for hop in pairwise(topology.node_index[name] for name in flow.path):
            link = topology.link_index[hop]
            if flow.bandwidth:
                found[LINK, link] = found.get((LINK, link), 0.0) + flow.bandwidth
    if cards is not None:
        for each in plan.cards:
            card = cards.column[each.node, each.card]
            for resource, amount in ((CARD, each.share), (CARD_MEMORY, each.memory)):
                if amount:
                    found[resource, card] = found.get((resource, card), 0.0) + amount
    return found
