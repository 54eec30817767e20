"""Where the users of an application are."""

from __future__ import annotations

from ces_common.access_nodes import Uncovered, access_node
from ces_common.application import Location
from ces_common.db.uow import WriteTx
from ces_common.messages.users import UserMoved
from ces_common.states import JOB_OVER
from ces_manager.errors import Conflict, Invalid, NotFound
from ces_manager.jobs.admission import PLACES
from ces_manager.jobs.transitions import job_row

NOT_BY_ITSELF = (
    "the job stays where it is, since its file does not say `adjust`: `ces adjust` tells what would be worth changing"
)


def move_user(tx: WriteTx, job: str, user: str, at: Location) -> str | None:
    """A user is at another position or node from now on. Returns what whoever asked should know. Raises NotFound;
    Conflict for a job that is over; Invalid for a place that no node covers."""
    row = job_row(tx, job)
    spec = row.spec
    index = next((i for i, each in enumerate(spec.users) if each.name == user), None)
    if index is None:
        known = ", ".join(each.name for each in spec.users[:5])
        raise NotFound(f"job {row.name} has no user {user}" + (f"; its users are {known}" if known else ""))
    if row.state in JOB_OVER:
        raise Conflict(f"job {row.name} is {row.state.value}; its users are served no more")
    if spec.users[index].at == at:
        return f"user {user} of job {row.name} is there already"
    try:
        node = access_node(at, tx.session.execute(PLACES).all())
    except Uncovered as error:
        raise Invalid("at", str(error)) from error
    users = [*spec.users]
    users[index] = users[index].model_copy(update={"at": at})
    row.spec, row.version = spec.model_copy(update={"users": users}), tx.version
    tx.emit("user", "moved", row.id, UserMoved(job=row.id, user=user, node=node), job=row.id)
    return None if row.adjusts else NOT_BY_ITSELF
