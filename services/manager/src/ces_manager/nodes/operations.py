"""What operators do with nodes: cordon, uncordon, drain, and say when their owners need them.

Each command returns None where it changed something, else a sentence that says what was so already."""

from __future__ import annotations

from functools import partial

from ces_common.db.uow import WriteTx
from ces_common.messages.owner_calendar import OwnerCalendar
from ces_manager.jobs import lifecycle
from ces_manager.jobs.transitions import change_on
from ces_manager.nodes.rows import emit_node, jobs_on, node_row


def cordon(tx: WriteTx, name: str) -> str | None:
    """Let no new task go to the node. Raises NotFound."""
    return None if _mark(tx, name, cordoned=True) else f"node {name} is cordoned already"


def uncordon(tx: WriteTx, name: str) -> str | None:
    """Let new tasks go to the node again. Raises NotFound."""
    return None if _mark(tx, name, cordoned=False) else f"node {name} is not cordoned"


def drain(tx: WriteTx, name: str) -> str | None:
    """Cordon the node and place its jobs elsewhere. Raises NotFound."""
    row = node_row(tx, name)
    jobs = jobs_on(tx, name)
    remark = f"node {name} is drained already: cordoned, and no job has anything there"
    drained = row.cordoned and not jobs
    row.cordoned, row.version = True, tx.version
    why = f"node {name} is drained"
    for job in jobs:
        walk = partial(lifecycle.reschedule, cause=lifecycle.Cause.DRAINED, reason=why)
        change_on(tx, job, name, walk, why, lost=False)
    emit_node(tx, row, "drained")
    return remark if drained else None


def set_calendar(tx: WriteTx, name: str, calendar: OwnerCalendar | None) -> str | None:
    """When the node's owner usually needs it; None: not known. Raises NotFound."""
    row = node_row(tx, name)
    if row.calendar == calendar:
        return f"node {name} has this calendar already" if calendar else f"node {name} has no calendar"
    row.calendar, row.version = calendar, tx.version
    emit_node(tx, row, "changed")
    return None


def _mark(tx: WriteTx, name: str, *, cordoned: bool) -> bool:
    """Whether that changed the node."""
    row = node_row(tx, name)
    if row.cordoned is cordoned:
        return False
    row.cordoned, row.version = cordoned, tx.version
    emit_node(tx, row, "cordoned" if cordoned else "uncordoned")
    return True
