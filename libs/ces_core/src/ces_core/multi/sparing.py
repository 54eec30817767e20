"""Where a job goes on a crowded cluster: where it leaves room for later jobs, as far as its flows can bear that.

Single-job solvers balance: they put tasks where most is free, and so leave a little everywhere, and nowhere enough for
a large task. One that counts what its plan leaves for later jobs gives up some balance for it, and some bandwidth.
"""

from __future__ import annotations

from ces_core.ledger import TOLERANCE
from ces_core.multi.jobs import WaitingJob
from ces_core.multi.reservations import Solve
from ces_core.plan import Result
from ces_core.problem import Cluster


def spared(job: WaitingJob, room: Cluster, sparing: Solve, balancing: Solve, declined: float | None) -> Result:
    """The plan that leaves room, unless one that does not would satisfy the flows by more than ``declined`` more. None:
    whatever it costs."""
    found = sparing(job, room)
    if declined is None or found.plan is None or satisfaction(found) >= 1.0 - declined - TOLERANCE:
        return found
    other = balancing(job, room)
    return found if satisfaction(found) >= satisfaction(other) - declined - TOLERANCE else other


def satisfaction(result: Result) -> float:
    """Of the plan's flows, 0 to 1; below 0 where there is no plan."""
    return -1.0 if result.metrics is None else result.metrics.bandwidth_satisfaction
