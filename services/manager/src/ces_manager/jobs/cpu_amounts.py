"""What workers have of CPU while it changes in place. An allocation never holds less than its worker may use: more is
held before the worker is to have it, and what it is to give up is held until its node's agent says that it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ces_common.db.tables import AllocationRow, JobRow
from ces_common.db.uow import WriteTx
from ces_common.messages.plans import CpuReleased
from ces_common.messages.reports import WorkerStatus
from ces_common.quantities import format_cpu


def why_not_cpu(row: JobRow, cpu: int | None) -> str | None:
    """Why the workers of the job's elastic group cannot have ``cpu`` millicores each, wherever they are; None where
    they can. ``cpu``: None stands for what the job's file says."""
    if cpu is None:
        return None
    elastic = row.spec.elastic
    if elastic is None or elastic.cpu is None:
        return f"the CPU of job {row.name} is not CES's to choose: its file has no elastic.cpu"
    if not elastic.cpu.min <= cpu <= elastic.cpu.max:
        allowed = f"{format_cpu(elastic.cpu.min)} to {format_cpu(elastic.cpu.max)}"
        return f"job {row.name} allows {allowed} of CPU for each worker, not {format_cpu(cpu)}"
    return None


def desire_cpu(tx: WriteTx, allocation: AllocationRow, cpu: int) -> None:
    """From now on its worker is to have ``cpu`` millicores."""
    allocation.cpu = max(allocation.cpu, cpu)
    allocation.cpu_desired, allocation.cpu_since = cpu, tx.version


def gave_up(allocation: Any, generation: int, workers: Sequence[WorkerStatus]) -> bool:
    """Whether its agent says that its worker has no more than it is to have, having heard of that (``generation``).
    ``allocation``: its columns. A node may say so falsely, of its own workers, and gives away what is its own by it."""
    if allocation.cpu_desired is None or allocation.cpu <= allocation.cpu_desired or generation < allocation.cpu_since:
        return False
    return any(
        (each.allocation, each.incarnation) == (allocation.id, allocation.incarnation)
        and each.state in ("running", "paused")
        and each.cpu is not None
        and each.cpu <= allocation.cpu_desired
        for each in workers
    )


def release_cpu(tx: WriteTx, allocation: str) -> None:
    """Hold no more than its worker is to have."""
    row = tx.session.get_one(AllocationRow, allocation)
    assert row.cpu_desired is not None
    row.cpu = row.cpu_desired
    job = tx.session.get_one(JobRow, row.job)
    job.version = tx.version
    released = CpuReleased(
        job=job.id, attempt=row.attempt, allocation=row.id, task=row.task, node=row.node, cpu=row.cpu
    )
    tx.emit("cpu", "released", row.id, released, job=job.id)


def as_asked(allocation: AllocationRow, cpu: int) -> None:
    """From now on it holds ``cpu``, and its worker has what its task asks for."""
    allocation.cpu, allocation.cpu_desired, allocation.cpu_since = cpu, None, None
