"""The queue file: what decides which waiting job goes first, and what each tenant may have. The manager reads its
tenants, the scheduler all of it; fields that are left out have their defaults."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from ces_common.fields import Document, Name
from ces_common.quantities import Duration
from ces_common.settings import ServiceSettings
from ces_common.setup_files import read_setup_file

LARGEST_WEIGHT = 1e6
MAX_WAITING = 1_000_000  # jobs that are looked at, or hold a reservation
MAX_TENANTS = 4096
SLACK = 1e-9  # sums of shares are of floating-point numbers


class QueueSettings(ServiceSettings):
    """``CES_QUEUE`` names the file; left out, or empty: all defaults."""

    queue: Path | None = None

    @field_validator("queue", mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        return value or None


def _weight(value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"must be 0 or more, is {value:g}; 0 takes it out of the score")
    return _weighty(value)


def _weighty(value: float) -> float:
    if value > LARGEST_WEIGHT:
        raise ValueError(f"must be at most {LARGEST_WEIGHT:g}, is {value:g}")
    return value


def _share(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"is a share, 0 to 1, not {value:g}")
    return value


def _above_zero(value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"must be above 0, is {value:g}")
    return value


def _not_below_zero(value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"must be 0 or more, is {value:g}")
    return value


Weight = Annotated[float, AfterValidator(_weight)]
Share = Annotated[float, AfterValidator(_share)]
Waiting = Annotated[int, Field(ge=1, le=MAX_WAITING)]


class ClusterShares(Document):
    """Shares of the whole cluster, 0 to 1; None: not limited, or nothing guaranteed."""

    cpu: Share | None = None
    memory: Share | None = None
    gpu: Share | None = None
    bandwidth: Share | None = None

    def said(self) -> dict[str, float]:
        """Resource -> share, where one is given."""
        return {resource: share for resource, share in self if share is not None}


class Weights(Document):
    """Weights of the parts of a job's score, in doublings: 1 counts as much as taking half as much."""

    fit: Weight = 1.0
    priority: Weight = 0.5
    waiting: Weight = 1.0
    share: Weight = 0.1


class TenantEntry(Document):
    """A tenant. What is guaranteed does not count when tenants' shares are compared; a quota is never exceeded."""

    name: Name
    weight: Annotated[float, AfterValidator(_above_zero), AfterValidator(_weighty)] = 1.0
    guaranteed: ClusterShares = ClusterShares()
    quota: ClusterShares = ClusterShares()
    waiting: Waiting | None = None  # instead of the file's


class QueueFile(Document):
    """``window``, ``overdue``, ``crowded``, ``declined`` and ``preemption``: null is none. Only the named ``tenants``
    may submit; if none is named, any may, with weight 1 and no quota. ``waiting``: jobs of each tenant."""

    window: Annotated[int, Field(ge=1, le=MAX_WAITING)] | None = 8
    weights: Weights = Weights()
    bound: Annotated[Duration, AfterValidator(_above_zero)] = 14_400
    overdue: Share | None = 0.5
    reservations: Annotated[int, Field(ge=0, le=MAX_WAITING)] = 4
    crowded: Share | None = 0.5
    declined: Share | None = 0.1
    patience: Annotated[Duration, AfterValidator(_not_below_zero)] = 300
    preemption: Annotated[int, Field(ge=1, le=100)] | None = None
    waiting: Waiting = 20_000
    tenants: Annotated[list[TenantEntry], Field(max_length=MAX_TENANTS)] = []

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        seen: set[str] = set()
        totals: dict[str, float] = defaultdict(float)
        for i, tenant in enumerate(self.tenants):
            if tenant.name in seen:
                raise ValueError(f"tenants[{i}].name: {tenant.name} is named twice: say what it has in one place")
            seen.add(tenant.name)
            quota = tenant.quota.said()
            for resource, share in tenant.guaranteed.said().items():
                where, most = f"tenants[{i}].guaranteed.{resource}", quota.get(resource, 1.0)
                if share > most:
                    raise ValueError(
                        f"{where}: {share:g} contradicts the quota of {most:g}: raise the quota, or guarantee less"
                    )
                totals[resource] += share
                if totals[resource] > 1 + SLACK:
                    raise ValueError(
                        f"{where}: all that is guaranteed adds up to more than the cluster, "
                        f"{totals[resource]:g} of it: guarantee less"
                    )
        return self

    def admits(self, tenant: str) -> bool:
        """Whether jobs of this tenant may be submitted."""
        return not self.tenants or tenant in self.names

    def may_wait(self, tenant: str) -> int:
        """How many jobs of this tenant may wait."""
        own = next((entry.waiting for entry in self.tenants if entry.name == tenant), None)
        return self.waiting if own is None else own

    @property
    def names(self) -> list[str]:
        """The tenants' names."""
        return [tenant.name for tenant in self.tenants]


def read_queue(path: Path | None) -> QueueFile:
    """What the file says; all defaults without one. Raises BadSetup, with file, field and what is wrong there."""
    return QueueFile() if path is None else read_setup_file(path, QueueFile, "CES_QUEUE")
