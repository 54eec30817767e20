"""Whether a placement keeps what an application asks for, as its users and nodes are now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ces_common.access_nodes import Uncovered, access_nodes
from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx
from ces_common.jobfile import Flow, Task
from ces_common.messages.plans import FlowPlan
from ces_manager.jobs.admission import PLACES
from ces_manager.plans.feasibility import Misfit, Obstacle, Residual
from ces_manager.plans.request_times import request_misfit


def application_misfit(
    tx: ReadTx,
    row: JobRow,
    tasks: Sequence[Task],
    flows: Sequence[Flow],
    assignments: Mapping[str, str],
    given: Sequence[FlowPlan],
    residual: Residual,
) -> Misfit | None:
    """The first reason why it does not; None where it does, or where nothing is asked. ``assignments`` and ``given``:
    of all tasks and flows; ``residual``: of all their nodes and links."""
    if not any(task.user is not None or task.work is not None for task in tasks):
        return None
    try:
        places = users_places(tx, row)
    except Uncovered as error:
        return Misfit(Obstacle.NODE, str(error))
    users, requests = row.spec.users, row.spec.requests
    return request_misfit(tasks, flows, users, requests, places, assignments, given, residual)


def users_places(tx: ReadTx, row: JobRow) -> Mapping[str, str]:
    """User -> access node, as users and nodes are now. Raises Uncovered."""
    users = row.spec.users
    return access_nodes(users, tx.session.execute(PLACES).all() if users else ())
