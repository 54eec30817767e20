"""Routes about other regions."""

from __future__ import annotations

from fastapi import APIRouter, Request

from ces_common.messages.regions import RegionList
from ces_manager.api.auth import VIEWER
from ces_manager.api.context import context_of
from ces_manager.api.other_regions import known_regions
from ces_manager.api.strict_route import StrictRoute
from ces_manager.errors import NotFound

router = APIRouter(prefix="/v1", tags=["regions"], route_class=StrictRoute)


@router.get("/regions", dependencies=[VIEWER])
async def regions(request: Request) -> RegionList:
    """This region, and what the others told it last: sums, which name no node and no job."""
    context = context_of(request)
    if context.region is None:
        raise NotFound("this cluster is no region: no other is known to it (CES_REGION)")
    return await known_regions(context)
