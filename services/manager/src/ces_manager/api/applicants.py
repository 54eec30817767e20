"""Routes by which devices apply to be made nodes, and those by which somebody looks who has."""

from __future__ import annotations

from fastapi import APIRouter, Request

from ces_common.messages.api import Page
from ces_common.messages.membership import Applicant, ApplicantRequest, RefusedApplicants
from ces_manager.api.auth import ADMIN, identity_of
from ces_manager.api.context import context_of
from ces_manager.api.failure_counts import network_of
from ces_manager.api.parameters import Cursor, Limit, PathName
from ces_manager.api.strict_route import StrictRoute
from ces_manager.errors import Overloaded
from ces_manager.nodes import applicants

router = APIRouter(prefix="/v1", tags=["cluster"], route_class=StrictRoute)
ANYBODY = "applicants"  # in whose name they are written down
SITE = 48  # bits of IPv6 that all addresses of a site have in common; a site counts as one network here


@router.post("/applicants", status_code=202)
async def apply(request: Request, body: ApplicantRequest) -> Applicant:
    """Apply to be made a node, where the manager is set to let devices apply. It takes no token, and gives no right:
    the name is on a list for a day, until somebody goes to the device by ssh (`ces node accept`). To say the same
    again changes nothing."""
    context, database = context_of(request), context_of(request).database
    address = request.client.host if request.client else ""
    network, most, now = network_of(address, SITE), context.max_applicants, database.clock.now()
    # Those that there is no room for, or that say nothing new, take no writer's turn.
    kept = await database.read(lambda tx: applicants.look_up(tx, body, address, network, most, now))
    if kept is not None:
        return kept
    if not context.applications.allows(ANYBODY, database.clock.steady()):
        raise Overloaded("too many devices apply just now")
    return await database.requested_write(
        lambda tx: applicants.keep_applicant(tx, body, address, network, most), ANYBODY
    )


@router.get("/applicants", dependencies=[ADMIN])
async def list_applicants(request: Request, limit: Limit = 100, cursor: Cursor = None) -> Page[Applicant]:
    """Devices that have applied and are no nodes yet, with the addresses from which they did. All else they claim."""
    database = context_of(request).database
    now = database.clock.now()
    return await database.read(lambda tx: applicants.list_applicants(tx, now, cursor=cursor, limit=limit))


@router.delete("/applicants/{node}", dependencies=[ADMIN])
async def refuse(request: Request, node: PathName) -> RefusedApplicants:
    """Remove a name from the list of devices that have applied. The device may apply again."""
    return await context_of(request).database.requested_write(
        lambda tx: applicants.refuse_applicants(tx, node), identity_of(request).name
    )
