"""Energy as the REST API shows it."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Select, func, select

from ces_common.db.energy_tables import AllocationEnergyRow, NodeEnergyRow
from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, NodeRow
from ces_common.db.uow import ReadTx
from ces_common.messages.api import Page
from ces_common.messages.energy import Energy, JobEnergy, JobOnNode, NodeEnergy, TaskEnergy
from ces_common.states import AllocationState
from ces_manager.cursors import node_cursor
from ces_manager.energy_book import EnergyBook
from ces_manager.errors import NotFound

MOST_TASKS = 1000
"""Of one job, the last ones."""


def list_energy(tx: ReadTx, book: EnergyBook, *, cursor: str | None, limit: int) -> Page[NodeEnergy]:
    """Of all nodes, in order of their names; the cursor is the last name seen. No job is named."""
    last = node_cursor(cursor) or ""
    query = select(NodeRow.name).where(NodeRow.name > last).order_by(NodeRow.name).limit(limit + 1)
    names = tx.session.scalars(query).all()
    rows = _rows(tx, names[:limit])
    views = [_view(name, rows.get(name), book) for name in names[:limit]]
    return Page[NodeEnergy](items=views, next=names[limit - 1] if len(names) > limit else None)


def node_energy(tx: ReadTx, book: EnergyBook, node: str, tenants: Collection[str] | None) -> NodeEnergy:
    """``tenants``: whose jobs are named; None for all. Raises NotFound."""
    if tx.session.get(NodeRow, node) is None:
        raise NotFound(f"no node {node}: ces get nodes lists those that there are")
    view = _view(node, _rows(tx, [node]).get(node), book)
    if view.energy is None:
        return view
    live = select(AllocationRow.job).where(AllocationRow.node == node, AllocationRow.state.in_(LIVE_STATES))
    sums = (
        select(
            JobRow.id,
            JobRow.name,
            func.sum(AllocationEnergyRow.measured).label("measured"),
            func.sum(AllocationEnergyRow.modelled).label("modelled"),
        )
        .join(AllocationRow, AllocationRow.id == AllocationEnergyRow.allocation)
        .join(JobRow, JobRow.id == AllocationRow.job)
        .where(AllocationRow.node == node, JobRow.id.in_(live))
        .group_by(JobRow.id, JobRow.name)
        .order_by(JobRow.id)
    )
    if tenants is not None:
        sums = sums.where(JobRow.tenant.in_(tenants))
    jobs = [
        JobOnNode(job=row.id, name=row.name, energy=joules(int(row.measured), int(row.modelled)))
        for row in tx.session.execute(sums)
    ]
    others = view.other_jobs
    for each in jobs:
        others = _less(others, each.energy)
    return view.model_copy(update={"jobs": jobs, "other_jobs": others})


def energy_of_nodes(tx: ReadTx, book: EnergyBook, names: Collection[str] | None = None) -> dict[str, Energy]:
    """Of all nodes, or those named, of which any is known."""
    return {
        name: joules(row.measured, row.modelled, book.watts(name) if heard else None)
        for name, (row, heard) in _rows(tx, names).items()
    }


def energy_of_job(tx: ReadTx, job: str) -> Energy | None:
    """What was attributed to all its attempts; None where nothing was."""
    query = (
        select(func.sum(AllocationEnergyRow.measured), func.sum(AllocationEnergyRow.modelled))
        .join(AllocationRow, AllocationRow.id == AllocationEnergyRow.allocation)
        .where(AllocationRow.job == job)
    )
    measured, modelled = tx.session.execute(query).one()
    return None if measured is None else joules(int(measured), int(modelled))


def job_energy(tx: ReadTx, job: str) -> JobEnergy:
    """Raises NotFound."""
    row = tx.session.get(JobRow, job)
    if row is None:
        raise NotFound(f"no job {job}")
    tasks, unknown = [], 0
    for each in tx.session.execute(_tasks(job)):
        known = None if each.measured is None else joules(each.measured, each.modelled)
        if known is None and each.state is AllocationState.PENDING:
            continue  # it has not run yet
        unknown += known is None
        tasks.append(TaskEnergy(task=each.task, node=each.node, attempt=each.attempt, energy=known))
    energy = energy_of_job(tx, job) or Energy()
    return JobEnergy(job=job, name=row.name, energy=energy, tasks=tasks, unknown=unknown)


def _tasks(job: str) -> Select[str, str, int, AllocationState, int, int]:
    return (
        select(
            AllocationRow.task,
            AllocationRow.node,
            AllocationRow.attempt,
            AllocationRow.state,
            AllocationEnergyRow.measured,
            AllocationEnergyRow.modelled,
        )
        .outerjoin(AllocationEnergyRow, AllocationEnergyRow.allocation == AllocationRow.id)
        .where(AllocationRow.job == job)
        .order_by(AllocationRow.attempt.desc(), AllocationRow.rank)
        .limit(MOST_TASKS)
    )


def _rows(tx: ReadTx, names: Collection[str] | None) -> dict[str, tuple[NodeEnergyRow, bool]]:
    """Each with whether the node is heard: what one that is silent uses now is not known."""
    query = select(NodeEnergyRow, NodeRow.state).join(NodeRow, NodeRow.name == NodeEnergyRow.node)
    if names is not None:
        query = query.where(NodeEnergyRow.node.in_(names))
    return {row.node: (row, state == "ready") for row, state in tx.session.execute(query)}


def _view(node: str, known: tuple[NodeEnergyRow, bool] | None, book: EnergyBook) -> NodeEnergy:
    if known is None:
        return NodeEnergy(node=node)
    row, heard = known
    return NodeEnergy(
        node=node,
        meter=row.meter,
        energy=joules(row.measured, row.modelled, book.watts(node) if heard else None),
        other_jobs=joules(row.jobs_measured, row.jobs_modelled),
        system=joules(row.measured - row.jobs_measured, row.modelled - row.jobs_modelled),
    )


def _less(one: Energy, other: Energy) -> Energy:
    """In whole microjoules, as both are."""
    return Energy(
        measured=max(round((one.measured - other.measured) * 1e6), 0) / 1e6,
        modelled=max(round((one.modelled - other.modelled) * 1e6), 0) / 1e6,
    )


def joules(measured: int, modelled: int, watts: float | None = None) -> Energy:
    """Of microjoules."""
    return Energy(measured=measured / 1e6, modelled=modelled / 1e6, watts=watts)
