"""Removing a node for good."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isfinite

from sqlalchemy import ColumnElement, delete, select

from ces_common.db.tables import NODE, HopRow, JobRow, NodeRow, RemovalRow, ReservationRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.disconnect import outlives_s
from ces_common.states import JobState
from ces_manager.errors import Conflict
from ces_manager.jobs import lifecycle
from ces_manager.jobs.task_moves import ASIDE, lose_spare
from ces_manager.jobs.transitions import change, change_on
from ces_manager.nodes.rows import emit_node, jobs_on, node_row, revoke_key, tasks_on
from ces_manager.timeouts import Timeouts


def forget_node(tx: WriteTx, timeouts: Timeouts, age_s: float, name: str) -> list[str]:
    """Remove a node that is lost, or drained and empty. Its capacity is free at once, its jobs are placed elsewhere,
    its key is never admitted again; its links stay in the topology for a node of the same name. Returns the jobs that
    lost something. ``age_s``: seconds since the node was last heard.

    Raises NotFound; Conflict where something may still run there."""
    row = node_row(tx, name)
    reason = _reason_to_keep(row, tasks_on(tx, name), age_s, _end_s(tx, name, timeouts))
    if reason is not None:
        raise Conflict(reason)
    why = f"node {name} was forgotten"
    touched = []
    for job in jobs_on(tx, name):
        walk = partial(lifecycle.node_lost, node=name, cause=lifecycle.Cause.FORGOTTEN, reason=why)
        change_on(tx, job, name, walk, why, lost=True)
        touched.append(job.id)
    for job in _jobs_through(tx, name):
        change(tx, job, partial(lifecycle.reschedule, cause=lifecycle.Cause.FORGOTTEN, reason=why))
        touched.append(job.id)
    for job in _moves_through(tx, name):
        lose_spare(tx, job, why)
    revoke_key(tx, row)
    emit_node(tx, row, "forgotten")
    tx.session.execute(delete(NodeRow).where(NodeRow.name == name), execution_options={"synchronize_session": False})
    tx.session.expunge(row)
    tx.session.merge(RemovalRow(kind=NODE, name=name, version=tx.version, removed_at=tx.now))
    return sorted(set(touched))


def _end_s(tx: ReadTx, node: str, timeouts: Timeouts) -> float:
    """Seconds of silence after which the last worker has stopped that stops by itself."""
    outlives = (outlives_s(job.disconnect) for job in jobs_on(tx, node))
    return timeouts.lease_s + timeouts.margin_s + max((each for each in outlives if isfinite(each)), default=0.0)


def _reason_to_keep(row: NodeRow, tasks: Sequence[str], age_s: float, end_s: float) -> str | None:
    """Why the node cannot be forgotten; None where nothing may still run there but what keeps going. ``end_s``: see
    ``_end_s``."""
    if row.state == "ready":
        if not row.cordoned:
            return f"node {row.name} is alive: drain it first (ces node drain {row.name}), or end its agent"
        if tasks:
            return f"node {row.name} is alive and not empty yet: {', '.join(tasks[:5])}; try again when it is"
    elif tasks and age_s <= end_s:
        left = max(end_s - age_s, 1)
        return f"node {row.name} may still be alive, its work ends in {left:.0f} s at the latest; try again then"
    return None


def _jobs_through(tx: ReadTx, node: str) -> Sequence[JobRow]:
    """Jobs with a flow through the node, or a suspended one whose flow starts or ends there; without what is held
    beside for a move."""
    passing = (
        select(ReservationRow.job)
        .join(HopRow, HopRow.number == ReservationRow.number)
        .where(ReservationRow.held, ReservationRow.attempt != ASIDE, _passes(node))
    )
    waiting = (
        select(ReservationRow.job, ReservationRow.path)
        .join(JobRow, JobRow.id == ReservationRow.job)
        .where(ReservationRow.held, JobRow.state == JobState.SUSPENDED)
    )
    jobs = {job for job, path in tx.session.execute(waiting) if node in (path[0], path[-1])}
    jobs.update(tx.session.scalars(passing))
    return tx.session.scalars(select(JobRow).where(JobRow.id.in_(jobs)).order_by(JobRow.id)).all()


def _moves_through(tx: ReadTx, node: str) -> Sequence[JobRow]:
    """Jobs for a task's move of which something is held through the node."""
    beside = (
        select(ReservationRow.job)
        .join(HopRow, HopRow.number == ReservationRow.number)
        .where(ReservationRow.held, ReservationRow.attempt == ASIDE, _passes(node))
    )
    return tx.session.scalars(select(JobRow).where(JobRow.id.in_(beside)).order_by(JobRow.id)).all()


def _passes(node: str) -> ColumnElement[bool]:
    return (HopRow.src == node) | (HopRow.dst == node)
