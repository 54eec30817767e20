"""Which secrets a node is given: those of a task that it is to start now, and no others. A task starts once with each
incarnation, and once its agent has said that it runs, that start is over."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import select

from ces_common.db.tables import AllocationRow, JobRow, NodeRow, SecretRow
from ces_common.db.uow import ReadTx
from ces_common.messages.confinement import keeps_secrets, why_no_secrets
from ces_common.messages.secrets import SecretsQuery
from ces_common.states import AllocationState, JobState
from ces_manager.errors import Forbidden, NotFound
from ces_manager.job_secrets.keys import SecretKeys, Unreadable
from ces_manager.job_secrets.store import NO_KEY
from ces_manager.jobs.admission import missing_secret

REQUESTS_PER_S, REQUEST_BURST = 20.0, 200  # of one node
_STARTS = frozenset({JobState.STARTING, JobState.RUNNING})  # RUNNING: one of its tasks starts again


class Started(Exception):
    """The task's agent has said of this very incarnation that it runs: it is given nothing again."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """``public_key``: of the node that it is for."""

    public_key: str
    files: dict[str, bytes] = field(repr=False)


def parcel_for(tx: ReadTx, keys: SecretKeys | None, node: str, query: SecretsQuery) -> Parcel:
    """The secrets of the task that is to start on that node as this incarnation. Raises Forbidden where none is, or the
    node is away or keeps its workers' files from nobody, Started, NotFound where one is stored no more, Unreadable."""
    device, allocation = tx.session.get(NodeRow, node), tx.session.get(AllocationRow, query.allocation)
    job = None if allocation is None else tx.session.get(JobRow, allocation.job)
    if device is None or allocation is None or job is None or not _is_present(allocation, job, node, query.incarnation):
        raise Forbidden(f"no task with these secrets is to start on node {node} now")
    if allocation.state is AllocationState.RUNNING:
        raise Started(f"{allocation.task} has started on node {node} already")
    if device.state != "ready":
        raise Forbidden(f"node {node} is {device.state}")
    if not keeps_secrets(device.confinement):
        raise Forbidden(f"node {node} {why_no_secrets(device.confinement)}")
    named = next(task.secrets for task in job.tasks if task.rank == allocation.rank)
    stored = select(SecretRow).where(SecretRow.tenant == job.tenant, SecretRow.name.in_(set(named.values())))
    sealed = {row.name: row.sealed for row in tx.session.scalars(stored)}
    for name in named.values():
        if name not in sealed:
            raise NotFound(missing_secret(job.tenant, name))
    if keys is None:
        raise Unreadable(NO_KEY)
    files = {file: keys.unseal(job.tenant, name, sealed[name]) for file, name in named.items()}
    return Parcel(device.public_key, files)


def _is_present(allocation: AllocationRow, job: JobRow, node: str, incarnation: int) -> bool:
    """Whether it is the task's present incarnation, and is wanted on that node."""
    return (
        allocation.node == node
        and allocation.attempt == job.attempt
        and allocation.incarnation == incarnation
        and allocation.state in (AllocationState.PENDING, AllocationState.RUNNING)
        and job.state in _STARTS
    )
