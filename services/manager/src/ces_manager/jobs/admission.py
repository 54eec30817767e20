"""Whether a job may be submitted: its tenant is there and has room in the queue, nodes offer the data that it reads,
the secrets that it names are stored, its users are in reach, and it leaves to CES what CES decides."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select

from ces_common.access_nodes import Uncovered, access_nodes
from ces_common.db.tables import JobRow, NodeRow, SecretRow
from ces_common.db.uow import ReadTx
from ces_common.flowfile import Input
from ces_common.jobfile import JobFile
from ces_common.queuefile import QueueFile
from ces_common.states import JOB_WAITS
from ces_common.torchrun import flag_of_ces
from ces_manager.errors import Invalid, Overloaded

SHOWN = 5
LEAST_MEMORY = 2**20
"""Bytes: no program runs in less, and whoever asks for that has forgotten the unit."""
PLACES = select(NodeRow.name, NodeRow.profile)


def check_tenant(queue: QueueFile, tenant: str) -> None:
    """Raises Invalid for a tenant that is not in the queue's file, where that lists any."""
    if not queue.admits(tenant):
        known = ", ".join(queue.names)
        raise Invalid(
            "tenant",
            f"no tenant is called {tenant!r}: name one of {known}, or have it added to the tenants in CES_QUEUE",
        )


def check_room(tx: ReadTx, queue: QueueFile, job: JobFile) -> None:
    """Raises Overloaded where as many jobs of the tenant wait as may."""
    most = queue.may_wait(job.tenant)
    waiting = select(JobRow.id).where(JobRow.state.in_(JOB_WAITS), JobRow.tenant == job.tenant).limit(most)
    if tx.session.scalar(select(func.count()).select_from(waiting.subquery())) == most:
        raise Overloaded(f"{most} jobs of tenant {job.tenant} wait, which is all that may: cancel some, or try later")


def due_at(now: datetime, job: JobFile) -> datetime | None:
    """The deadline of a job that is submitted now. Raises Invalid."""
    if job.deadline is None:
        return None
    try:
        return job.deadline.due_at(now)
    except ValueError as error:
        raise Invalid("deadline.at", str(error)) from error


def check_inputs(tx: ReadTx, job: JobFile) -> None:
    """Raises Invalid for an input from an unknown node, or of data that the node does not offer."""
    for i, data in enumerate(job.flows.inputs):
        row = tx.session.get(NodeRow, data.node)
        where = f"flows.inputs[{i}]"
        if row is None:
            raise Invalid(f"{where}.node", f"no node is named {data.node}; ces get nodes lists those that have joined")
        if not row.datasets:
            raise Invalid(
                f"{where}.node", f"node {row.name} offers no data: set CES_DATASETS on it, to a folder with datasets"
            )
        _check_names(row, data, f"{where}.datasets")


def check_secrets(tx: ReadTx, job: JobFile) -> None:
    """Raises Invalid for a secret that the job's tenant does not have."""
    named = {secret.stored for group in job.tasks for secret in group.secrets.values()}
    if not named:
        return
    stored = select(SecretRow.name).where(SecretRow.tenant == job.tenant, SecretRow.name.in_(named))
    missing = named - set(tx.session.scalars(stored))
    for i, group in enumerate(job.tasks):
        for file, secret in group.secrets.items():
            if secret.stored in missing:
                raise Invalid(f"tasks[{i}].secrets.{file}.from", missing_secret(job.tenant, secret.stored))


def check_users(tx: ReadTx, job: JobFile) -> None:
    """Raises Invalid for a user at no node, or at a position that none covers."""
    if not job.users:
        return
    try:
        access_nodes(job.users, tx.session.execute(PLACES).all())
    except Uncovered as error:
        field, _, why = str(error).partition(": ")
        raise Invalid(field, why) from error


def check_tasks(job: JobFile) -> None:
    """Raises Invalid for memory in which nothing runs, and a malleable job that itself tells torchrun who takes part.
    Here and not in the file's model, which also reads what was stored before."""
    for i, group in enumerate(job.tasks):
        memory = group.resources.memory
        if memory < LEAST_MEMORY:
            raise Invalid(
                f"tasks[{i}].resources.memory", f"{memory} bytes are too few to run in: write a unit, like {memory}Mi"
            )
        if job.elastic is not None and group.name == job.elastic.group and (flag := flag_of_ces(group.argv)):
            raise Invalid(f"tasks[{i}].command", f"leave out {flag}: CES tells torchrun at each start who takes part")


def missing_secret(tenant: str, name: str) -> str:
    return f"no secret {name} in tenant {tenant}: create it with `ces secret create {name} --tenant {tenant}`"


def _check_names(row: NodeRow, data: Input, field: str) -> None:
    for k, name in enumerate(data.datasets):
        if name not in row.datasets:
            raise Invalid(
                f"{field}[{k}]",
                f"node {row.name} offers no dataset {name}, only {_listed(row.datasets)}; name one of them, or put a "
                f"folder {name} into its CES_DATASETS",
            )


def _listed(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
