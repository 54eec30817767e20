"""Routes about other regions."""

from __future__ import annotations

from fastapi import APIRouter, Request

from ces_common.messages.region_holds import HoldList
from ces_common.messages.regions import RegionList
from ces_manager.api.auth import VIEWER, identity_of
from ces_manager.api.context import Context, context_of
from ces_manager.api.other_regions import known_regions
from ces_manager.api.strict_route import StrictRoute
from ces_manager.errors import NotFound
from ces_manager.regions import holds

router = APIRouter(prefix="/v1", tags=["regions"], route_class=StrictRoute)


@router.get("/regions", dependencies=[VIEWER])
async def regions(request: Request) -> RegionList:
    """This region, and what the others told it last: sums, which name no node and no job."""
    return await known_regions(_region(request))


@router.get("/regions/holds", dependencies=[VIEWER])
async def get_holds(request: Request) -> HoldList:
    """Jobs that regions hold for each other, as this one's database knows them: of whose they are, since when, and what
    has become of it. At most 200 of each side, those that are not over first."""
    context, tenants = _region(request), identity_of(request).tenants
    return await context.database.read(lambda tx: holds.holds(tx, context.region or "", tenants))


def _region(request: Request) -> Context:
    """Raises NotFound."""
    context = context_of(request)
    if context.region is None:
        raise NotFound("this cluster is no region: no other is known to it (CES_REGION)")
    return context
