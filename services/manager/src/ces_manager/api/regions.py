"""Routes about other regions."""

from __future__ import annotations

from fastapi import APIRouter, Request

from ces_common import subjects
from ces_common.bus.port import LARGEST_REQUEST, BusError, NoResponder
from ces_common.messages.regions import RegionList
from ces_manager.api.auth import VIEWER
from ces_manager.api.context import context_of
from ces_manager.api.strict_route import StrictRoute
from ces_manager.errors import NotFound, Unavailable

router = APIRouter(prefix="/v1", tags=["regions"], route_class=StrictRoute)
ANSWER_S = 2.0


@router.get("/regions", dependencies=[VIEWER])
async def regions(request: Request) -> RegionList:
    """This region, and what the others told it last: sums, which name no node and no job."""
    context = context_of(request)
    if context.region is None:
        raise NotFound("this cluster is no region: no other is known to it (CES_REGION)")
    try:
        raw = await context.bus.request(
            subjects.rpc("federation", "regions"), timeout_s=ANSWER_S, largest=LARGEST_REQUEST
        )
        return RegionList.model_validate_json(raw)
    except (BusError, ValueError) as error:
        who = "is not there" if isinstance(error, NoResponder) else "does not answer"
        raise Unavailable(f"the federation service {who}; jobs of this region go on") from error
