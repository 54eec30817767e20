"""Tenants' shares of the cluster: dominant-resource fairness, guarantees and quotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ces_core.model.problem import Cluster, FloatArray
from ces_core.model.reason import Reason
from ces_core.queue.jobs import RunningJob, WaitingJob
from ces_core.queue.ledger import LINK, TOLERANCE, Cell, Ledger
from ces_core.queue.parameters import AMOUNTS, Parameters, Tenant


def amounts_of(cells: Mapping[Cell, float]) -> FloatArray:
    """(amounts,): totals of the cells; bandwidth is summed over all links."""
    total = np.zeros(len(AMOUNTS))
    for (resource, _), amount in cells.items():
        if resource >= LINK:  # cards are counted with their nodes
            total[resource if resource != LINK else len(AMOUNTS) - 1] += amount
    return total


def capacity_of(cluster: Cluster) -> FloatArray:
    """(amounts,): capacity of all nodes, and of all links."""
    return np.append(cluster.node_capacity.sum(axis=1), cluster.link_capacity.sum())


def free_of(cluster: Cluster) -> FloatArray:
    """(amounts,): free capacity of all nodes, and of all links."""
    return np.append(cluster.node_free.sum(axis=1), np.maximum(cluster.link_capacity - cluster.link_used, 0.0).sum())


class Shares:
    """What each tenant holds, updated within a cycle as jobs start."""

    def __init__(
        self, parameters: Parameters, ledger: Ledger, running: Iterable[RunningJob], waiting: Iterable[WaitingJob]
    ) -> None:
        self._capacity = capacity_of(ledger.base)
        self._used: dict[str, FloatArray] = {}
        self._running: dict[str, int] = {}
        for job in running:
            self.take(job.tenant, amounts_of(ledger.held(job.name)))
        submitting = {job.tenant for job in waiting}
        for name in sorted(submitting):
            self._used.setdefault(name, np.zeros(len(AMOUNTS)))
        self._tenants = {name: parameters.tenant(name) if name in submitting else Tenant(name) for name in self._used}

    def take(self, tenant: str, amounts: FloatArray) -> None:
        """Add a job to what the tenant holds."""
        self._used[tenant] = self._used.get(tenant, np.zeros(len(AMOUNTS))) + amounts
        self._running[tenant] = self._running.get(tenant, 0) + 1

    def give_back(self, tenant: str, amounts: FloatArray) -> None:
        """Remove a job from what the tenant holds."""
        self._used[tenant] = self._used[tenant] - amounts
        self._running[tenant] -= 1

    def idle(self) -> set[str]:
        """Tenants with no running job."""
        return {name for name in self._used if not self._running.get(name)}

    def dominant(self, name: str) -> float:
        """The tenant's largest share of any resource beyond its guarantee, divided by its weight; never below 0."""
        tenant = self._tenants[name]
        guaranteed = np.array([tenant.guaranteed.get(resource, 0.0) for resource in AMOUNTS])
        return max(0.0, float((self._shares(name) - guaranteed).max())) / tenant.weight

    def against_fair(self) -> dict[str, float]:
        """Tenant -> its dominant share relative to the mean of all tenants that run or wait: 1 is fair, 0 nothing."""
        shares = {name: self.dominant(name) for name in self._used}
        mean = sum(shares.values()) / max(len(shares), 1)
        return {name: share / mean if mean else 1.0 for name, share in shares.items()}

    def limited(self, tenant: str) -> bool:
        """Whether the tenant has a quota."""
        return bool(self._tenants[tenant].quota)

    def beyond_quota(self, tenant: str, amounts: FloatArray) -> Reason | None:
        """Why the tenant may not have this too; permanent if it exceeds the whole quota."""
        for row, resource in enumerate(AMOUNTS):
            share = self._tenants[tenant].quota.get(resource)
            if share is None or not amounts[row]:
                continue
            most, used = share * float(self._capacity[row]), float(self._used[tenant][row])
            if used + amounts[row] > most * (1 + TOLERANCE):
                never = bool(amounts[row] > most * (1 + TOLERANCE))
                left = most if never else max(0.0, most - used)
                return Reason(
                    "quota", never, resource=resource, needed=float(amounts[row]), available=left, where=tenant
                )
        return None

    def _shares(self, name: str) -> FloatArray:
        used = self._used[name]
        return np.divide(used, self._capacity, out=np.zeros_like(used), where=self._capacity > 0)
