"""Whether tasks fit on the nodes together, bandwidth aside: seen within a fraction of a millisecond, where a solver
that finds no place takes longest.
"""

from __future__ import annotations

import numpy as np

from ces_core.ledger import TOLERANCE
from ces_core.multi.jobs import WaitingJob
from ces_core.multi.reservations import Solve
from ces_core.plan import Considered, Result
from ces_core.problem import Cluster, Problem
from ces_core.reason import Reason

SCREEN = "screen"
"""Who is named as the solver of a refusal for which none was asked."""
UNSEARCHED = Considered((), (), np.zeros((0, 0), dtype=np.int8))
STEPS = 400
"""So many placements are looked at, at most. Where that does not settle it, the tasks may fit."""


def screened(solve: Solve) -> Solve:
    """The solver, which is not asked where the tasks do not fit on the nodes together: what it would not find takes it
    longest."""

    def answer(job: WaitingJob, cluster: Cluster) -> Result:
        reason = apart(job.on(cluster))
        return solve(job, cluster) if reason is None else Result(SCREEN, UNSEARCHED, reason=reason)

    return answer


def apart(problem: Problem) -> Reason | None:
    """Why the tasks do not fit on the nodes together, whatever the links; None where they may."""
    stuck = _stuck(problem)
    if stuck is None:
        return None
    permanent = _stuck(problem.on_empty_cluster()) is not None
    return Reason("packing", permanent, True, task=problem.tasks[stuck].name)


def _stuck(problem: Problem) -> int | None:
    """The task that was most often without a node, where all placements have been looked at and none holds all."""
    cluster = problem.cluster
    free = cluster.node_free + TOLERANCE * cluster.node_capacity  # what rounding may add up to is no proof
    order = np.argsort(-free.sum(axis=0), kind="stable")
    room: list[list[float]] = free[:, order].T.tolist()
    demand: list[list[float]] = problem.demand.tolist()
    packed = np.packbits(problem.homes[:, order], axis=1, bitorder="little")
    homes = [int.from_bytes(row.tobytes(), "little") for row in packed]
    often = [0] * len(demand)
    steps = STEPS

    def placed(left: list[int], homes: list[int]) -> bool:
        """Whether the tasks that are left have places; those with fewest nodes first. True also where steps ran out."""
        nonlocal steps
        if not left:
            return True
        task = min(left, key=lambda each: (homes[each].bit_count(), each))
        others = [each for each in left if each != task]
        nodes = homes[task]
        if not nodes:
            often[task] += 1
            return False
        while nodes:
            bit = nodes & -nodes
            nodes ^= bit
            steps -= 1
            if steps <= 0:
                return True
            before = room[bit.bit_length() - 1]
            after = [has - takes for has, takes in zip(before, demand[task], strict=True)]
            then = homes.copy()
            for each in others:
                if then[each] & bit and any(takes > has for takes, has in zip(demand[each], after, strict=True)):
                    then[each] ^= bit
            room[bit.bit_length() - 1] = after
            found = placed(others, then)
            room[bit.bit_length() - 1] = before
            if found:
                return True
        return False

    if placed(list(range(len(demand))), homes):
        return None
    return max(range(len(demand)), key=lambda each: (often[each], -each))
