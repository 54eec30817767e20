"""The parameters of CES-Multi that an operator may set, with defaults, checked when they are made.

Score weights are in *doublings*: one doubling of lead makes up for taking twice as much. Each weight thus says how many
times cheaper another job must be to go first all the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from ces_core.model.errors import ProblemError
from ces_core.model.problem import RESOURCES

AMOUNTS = (*RESOURCES, "bandwidth")
"""The quantities jobs ask for and tenants have shares of, in the order of every array of amounts."""
DEFAULT_TENANT = "default"
NOTHING: Mapping[str, float] = MappingProxyType({})
LEAST_PRIORITY, MOST_PRIORITY = 0, 100


@dataclass(frozen=True)
class Tenant:
    """Somebody who submits jobs. ``weight``: relative claim to a fair share. ``guaranteed`` and ``quota``: resource
    (cpu, memory, gpu, bandwidth) -> share of the whole cluster, 0 to 1. Guaranteed amounts do not count when shares are
    compared, so a tenant below its guarantee goes first; a quota is never exceeded, even if capacity is idle.

    Raises ProblemError, naming the field, for an invalid weight or share, or a guarantee above its quota.
    """

    name: str
    weight: float = 1.0
    guaranteed: Mapping[str, float] = field(default_factory=lambda: NOTHING)
    quota: Mapping[str, float] = field(default_factory=lambda: NOTHING)

    def __post_init__(self) -> None:
        where = f"tenants.{self.name}"
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise ProblemError(f"{where}.weight", f"must be above 0, is {self.weight}; leave it out for 1")
        for what, shares in (("guaranteed", self.guaranteed), ("quota", self.quota)):
            for resource, share in shares.items():
                if resource not in AMOUNTS:
                    raise ProblemError(
                        f"{where}.{what}.{resource}", f"no such resource; there are {', '.join(AMOUNTS)}"
                    )
                if not 0 <= share <= 1:
                    raise ProblemError(f"{where}.{what}.{resource}", f"is a share of the cluster: 0 to 1, not {share}")
        for resource, share in self.guaranteed.items():
            most = self.quota.get(resource, 1.0)
            if share > most:
                raise ProblemError(
                    f"{where}.guaranteed.{resource}",
                    f"{share} contradicts the quota of {most}: raise the quota, or guarantee less",
                )


@dataclass(frozen=True)
class Parameters:
    """Parameters of the queue; the defaults are those of the benchmark (docs/benchmarks/multi.md).

    ``window``: how many candidates the solver may refuse in one cycle. Known refusals count again only once something
    has become free, so the window moves on through the queue. A tenant with no running job has its best job tried first
    if others' jobs might fill the window. None: unlimited.

    ``starts``: at most this many jobs start in one cycle. None: unlimited.

    Weights of the score, in doublings:
    - ``fit``: for a job that takes half as much. A job takes its largest share of what is free, over CPU, memory, GPU
      and bandwidth, times its expected run time.
    - ``priority``: for priority 100 over priority 0.
    - ``waiting``: for a job that has waited until overdue over one that just came. It keeps growing afterwards.
    - ``share``: for a tenant that has nothing over one that has its fair share.

    ``bound_s``: how long a job may wait while it could run. ``overdue``: the share of that bound after which a job is
    overdue, and age comes before any score. None: never. ``reservations``: at most this many overdue jobs have a
    reservation, and as many that must begin now.

    ``crowded``: once running and waiting jobs ask for more than this share of some node resource, plans avoid
    fragmentation rather than balance load, as far as the solver can, and as long as this costs the flows no more than
    ``declined``. None: never.

    ``preemption``: a job that does not fit may preempt running ones whose priority is lower by at least this much.
    None: never.

    ``declined``: a job declines a plan whose bandwidth satisfaction is lower by this much than on the empty cluster,
    while running jobs will end and until it has waited ``patience_s``. None: it takes any plan.

    ``tenants``: the known tenants; if there are none, anyone may submit, with weight 1 and no quota.

    Raises ProblemError, naming the field.
    """

    window: int | None = 8
    starts: int | None = None
    fit: float = 1.0
    priority: float = 0.5
    waiting: float = 1.0
    share: float = 0.1
    bound_s: float = 14_400.0
    overdue: float | None = 0.5
    reservations: int = 4
    crowded: float | None = 0.5
    declined: float | None = 0.1
    patience_s: float = 300.0
    preemption: int | None = None
    tenants: Sequence[Tenant] = ()

    def __post_init__(self) -> None:
        if self.crowded is not None and not 0 <= self.crowded <= 1:
            raise ProblemError("crowded", f"is a share of what the nodes have: 0 to 1, not {self.crowded}")
        if self.declined is not None and not 0 <= self.declined <= 1:
            raise ProblemError("declined", f"is a loss of bandwidth satisfaction: 0 to 1, not {self.declined}")
        if not (math.isfinite(self.patience_s) and self.patience_s >= 0):
            raise ProblemError(
                "patience_s", f"must be 0 seconds or more, is {self.patience_s}; 0 waits for no bandwidth"
            )
        if self.preemption is not None and not 1 <= self.preemption <= MOST_PRIORITY:
            raise ProblemError(
                "preemption", f"is a difference of priorities: 1 to 100, not {self.preemption}; leave it out for never"
            )
        if self.window is not None and self.window < 1:
            raise ProblemError("window", f"must be at least 1, is {self.window}; leave it out for the default")
        if self.starts is not None and self.starts < 1:
            raise ProblemError("starts", f"must be at least 1, is {self.starts}; leave it out for no end")
        for name in ("fit", "priority", "waiting", "share"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ProblemError(name, f"a weight is 0 or more, not {value}; 0 takes it out of the score")
        if not (math.isfinite(self.bound_s) and self.bound_s > 0):
            raise ProblemError("bound_s", f"must be above 0 seconds, is {self.bound_s}")
        if self.overdue is not None and not 0 <= self.overdue <= 1:
            raise ProblemError("overdue", f"is a share of the bound: 0 to 1, not {self.overdue}")
        if self.reservations < 0:
            raise ProblemError("reservations", f"must be 0 or more, is {self.reservations}; 0 keeps room for nobody")
        names = [tenant.name for tenant in self.tenants]
        for name in names:
            if names.count(name) > 1:
                raise ProblemError(f"tenants.{name}", "is named twice: say what it has in one place")
        for resource in AMOUNTS:
            total = math.fsum(tenant.guaranteed.get(resource, 0.0) for tenant in self.tenants)
            if total > 1 + 1e-9:
                raise ProblemError(
                    f"tenants.guaranteed.{resource}", f"adds up to {total:g} of the cluster: guarantee 1 at most in all"
                )

    @property
    def overdue_s(self) -> float:
        """Seconds of waiting after which a job is overdue; infinite if never."""
        return math.inf if self.overdue is None else self.overdue * self.bound_s

    def tenant(self, name: str) -> Tenant:
        """The tenant of this name. Raises ProblemError if it is unknown."""
        if not self.tenants:
            return Tenant(name)
        for tenant in self.tenants:
            if tenant.name == name:
                return tenant
        known = ", ".join(tenant.name for tenant in self.tenants)
        raise ProblemError("job.tenant", f"no tenant is called {name!r}: name one of {known}, or add it to tenants")
