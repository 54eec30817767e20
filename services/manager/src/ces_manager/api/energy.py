"""Routes about energy: what nodes have used, and what of it was attributed to which job."""

from __future__ import annotations

from fastapi import APIRouter, Request

from ces_common.messages.api import Page
from ces_common.messages.energy import JobEnergy, NodeEnergy
from ces_manager.api.auth import VIEWER, identity_of
from ces_manager.api.context import context_of
from ces_manager.api.jobs import VisibleJob
from ces_manager.api.parameters import Cursor, Limit, PathName
from ces_manager.api.strict_route import StrictRoute
from ces_manager.energy import views

router = APIRouter(prefix="/v1", tags=["cluster"], route_class=StrictRoute)


@router.get("/energy", dependencies=[VIEWER])
async def list_energy(request: Request, limit: Limit = 100, cursor: Cursor = None) -> Page[NodeEnergy]:
    """What nodes have used, `measured` or `modelled`, and what of it was attributed to jobs, as of the last half
    minute; nothing where it is unknown."""
    context = context_of(request)
    book = context.measurements.energy
    return await context.database.read(lambda tx: views.list_energy(tx, book, cursor=cursor, limit=limit))


@router.get("/nodes/{node}/energy", dependencies=[VIEWER])
async def node_energy(request: Request, node: PathName) -> NodeEnergy:
    """What a node has used, and what of it was attributed to each job that has something there. The jobs, other jobs
    and the system add up to the node."""
    context, tenants = context_of(request), identity_of(request).tenants
    book = context.measurements.energy
    return await context.database.read(lambda tx: views.node_energy(tx, book, node, tenants))


@router.get("/jobs/{job}/energy", dependencies=[VIEWER])
async def job_energy(request: Request, job: VisibleJob) -> JobEnergy:
    """What was attributed to a job in all its attempts, task by task."""
    return await context_of(request).database.read(lambda tx: views.job_energy(tx, job))
