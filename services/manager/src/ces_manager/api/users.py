"""Routes about the users of applications."""

from __future__ import annotations

from fastapi import APIRouter, Request

from ces_common.messages.api import JobView
from ces_common.messages.users import UserPlace
from ces_manager.api.auth import SUBMITTER
from ces_manager.api.jobs import VisibleJob, commanded
from ces_manager.api.parameters import PathName
from ces_manager.api.strict_route import StrictRoute
from ces_manager.jobs.users import move_user

router = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)


@router.put("/jobs/{job}/users/{user}", dependencies=[SUBMITTER])
async def place_user(request: Request, job: VisibleJob, user: PathName, asked: UserPlace) -> JobView:
    """Say where a user of an application is now. Where the job's file says `adjust`, CES looks at once whether it
    should be changed for that; any other job keeps its places."""
    return await commanded(request, lambda tx, job: move_user(tx, job, user, asked.at), job)
