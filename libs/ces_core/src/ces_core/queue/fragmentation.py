"""Fragmentation-aware placement on a crowded cluster: plans that leave usable capacity for later jobs.

A solver that only balances load puts tasks where most is free. This leaves a little everywhere, and nowhere enough for
a large task. A fragmentation-aware solver gives up some balance, and some bandwidth, to avoid that.
"""

from __future__ import annotations

from ces_core.model.plan import Result
from ces_core.model.problem import Cluster
from ces_core.queue.jobs import WaitingJob
from ces_core.queue.ledger import TOLERANCE
from ces_core.queue.reservations import Solve


def fragmentation_aware_answer(
    job: WaitingJob, cluster: Cluster, fragmentation_aware: Solve, balancing: Solve, declined: float | None
) -> Result:
    """The fragmentation-aware plan, unless the balancing one satisfies flows better by more than ``declined``. None
    accepts any loss."""
    found = fragmentation_aware(job, cluster)
    if declined is None or found.plan is None or satisfaction(found) >= 1.0 - declined - TOLERANCE:
        return found
    other = balancing(job, cluster)
    return found if satisfaction(found) >= satisfaction(other) - declined - TOLERANCE else other


def satisfaction(result: Result) -> float:
    """The plan's bandwidth satisfaction, 0 to 1; negative without a plan."""
    return -1.0 if result.metrics is None else result.metrics.bandwidth_satisfaction
