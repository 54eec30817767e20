"""Routes about the work that jobs do."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from ces_common.messages.bounds import Node
from ces_common.messages.work import JobProfile
from ces_manager.api.auth import VIEWER
from ces_manager.api.context import context_of
from ces_manager.api.jobs import VisibleJob
from ces_manager.api.strict_route import StrictRoute
from ces_manager.work import views

MOST_NODES = 100
router = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)
Nodes = Annotated[list[Node], Query(max_length=MOST_NODES)]


@router.get("/jobs/{job}/profile", dependencies=[VIEWER])
async def job_profile(request: Request, job: VisibleJob, node: Nodes = []) -> JobProfile:  # noqa: B006
    """What a step of a job's tasks takes of CPU time and of time, the work that this is by class, and what it is
    predicted to take on each `node`, with what is not known."""
    context = context_of(request)
    nodes = list(dict.fromkeys(node))
    return await context.database.read(lambda tx: views.job_profile(tx, job, context.measurements.work, nodes))
