"""Who of the waiting jobs is tried before whom, beside score and age."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ces_core.multi.scoring import Table
from ces_core.multi.shares import Shares
from ces_core.topology import IntArray

Bools = NDArray[np.bool_]


def ranks(table: Table, margin: int | None) -> IntArray:
    """(jobs,): whoever could preempt another has a higher rank, so that nobody starts to be preempted at once. All the
    same where nobody preempts."""
    priorities = np.array([job.priority for job in table.jobs], dtype=np.int64)
    return np.zeros_like(priorities) if margin is None else priorities // margin


def firsts(table: Table, shares: Shares, order: Sequence[int], left: Bools) -> Bools:
    """(jobs,): the best of each tenant of which nothing runs, among those that are ``left``. ``order``: by score."""
    found = np.zeros(len(left), dtype=np.bool_)
    idle = shares.idle()
    for line in order if idle else ():
        tenant = table.jobs[line].tenant
        if left[line] and tenant in idle:
            found[line] = True
            idle.discard(tenant)
    return found


def flooded(table: Table, window: int, others: Bools) -> Bools:
    """(jobs,): those before whom so many of ``others`` of other tenants may have to be tried that they would fill the
    window."""
    tenants = table.tenant[others]
    ahead = len(tenants) - np.bincount(tenants, minlength=len(table.tenants))
    return np.asarray(ahead >= window)[table.tenant]
