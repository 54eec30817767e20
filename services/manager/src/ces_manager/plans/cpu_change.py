"""Commit of a proposed change of what the workers of a running job's elastic group have of CPU, in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ces_common.db.tables import AllocationRow, JobRow
from ces_common.db.uow import WriteTx
from ces_common.messages.plans import CpuCommitted, CpuProposed, CpuRejected
from ces_common.states import AllocationState, JobState
from ces_manager.jobs.cpu_amounts import desire_cpu, why_not_cpu
from ces_manager.jobs.transitions import allocations_of
from ces_manager.plans.feasibility import growth_misfit
from ces_manager.plans.proposal import Refused, Stale, job_at
from ces_manager.plans.residual import residual_of


def commit_cpu(tx: WriteTx, proposal: CpuProposed) -> str | None:
    """Commit a change that fits beside everything else that is held; reject any other, and return the reason. What is
    added is held from now on; what is given up, once the workers' agents say that they have no more."""
    try:
        row, workers = _changeable(tx, proposal)
        more = Counter[str]()
        for worker in workers:
            more[worker.node] += max(0, proposal.cpu - worker.cpu)
        grown = +more
        reason = growth_misfit(grown, residual_of(tx, grown.keys(), ()))
        if reason is not None:
            raise Refused(reason)
    except Refused as error:
        rejected = CpuRejected(
            change=proposal.change,
            job=proposal.job,
            attempt=proposal.attempt,
            reason=str(error),
            stale=isinstance(error, Stale),
        )
        tx.emit("cpu", "rejected", proposal.change, rejected)
        return rejected.reason
    for worker in workers:
        desire_cpu(tx, worker, proposal.cpu)
    row.version = tx.version
    committed = CpuCommitted(change=proposal.change, job=row.id, attempt=row.attempt, cpu=proposal.cpu)
    tx.emit("cpu", "committed", proposal.change, committed, job=row.id)
    return None


def _changeable(tx: WriteTx, proposal: CpuProposed) -> tuple[JobRow, Sequence[AllocationRow]]:
    """The job, and the allocations whose workers are to have another amount. Raises Refused, Stale."""
    row = job_at(tx, proposal.job, proposal.attempt, proposal.version)
    if (reason := why_not_cpu(row, proposal.cpu)) is not None:
        raise Refused(reason)
    elastic = row.spec.elastic
    assert elastic is not None
    if row.state is not JobState.RUNNING:
        raise Stale(f"job {row.name} is {row.state.value}; only of a running job does CPU change")
    group = [each for each in allocations_of(tx, [row])[row.id] if elastic.includes(each.task)]
    running = [each for each in group if each.state is AllocationState.RUNNING]
    changed = [each for each in running if _now(each) != proposal.cpu]
    if not changed:
        raise Refused(f"no running worker of job {row.name} would have another amount of CPU")
    return row, changed


def _now(allocation: AllocationRow) -> int:
    return allocation.cpu if allocation.cpu_desired is None else allocation.cpu_desired
