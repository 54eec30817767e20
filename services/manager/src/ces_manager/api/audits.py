"""Routes about audits that were published. Whoever is limited to some tenants sees the findings about their jobs."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ces_common.messages.api import Page
from ces_common.messages.audits import AuditReport, AuditSummary, AuditView
from ces_manager import audits
from ces_manager.api.auth import AUDITED, AUDITOR, identity_of
from ces_manager.api.context import context_of
from ces_manager.api.etags import UNCHANGED, IfNoneMatch, check_known
from ces_manager.api.parameters import Cursor, Limit, PathName
from ces_manager.api.strict_route import StrictRoute

router = APIRouter(prefix="/v1", tags=["cluster"], route_class=StrictRoute)


@router.post("/audits", status_code=201, dependencies=[AUDITOR])
async def publish_audit(request: Request, report: AuditReport) -> AuditView:
    """Publish what an audit of the event log found, as `ces audit --publish` does; kept for as long as events are."""
    name = identity_of(request).name
    return await context_of(request).database.requested_write(lambda tx: audits.publish_audit(tx, report, name), name)


@router.get("/audits", responses=UNCHANGED, dependencies=[AUDITED])
async def list_audits(
    request: Request, response: Response, limit: Limit = 100, cursor: Cursor = None, if_none_match: IfNoneMatch = None
) -> Page[AuditSummary]:
    """Published audits without their findings, the newest first."""
    database, tenants = context_of(request).database, identity_of(request).tenants
    check_known(request, response, if_none_match, await database.read(audits.ends))
    return await database.read(lambda tx: audits.list_audits(tx, cursor=cursor, limit=limit, tenants=tenants))


@router.get("/audits/latest", responses=UNCHANGED, dependencies=[AUDITED])
async def latest_audit(request: Request, response: Response, if_none_match: IfNoneMatch = None) -> AuditView:
    """The audit that was published last, with its findings."""
    database, tenants = context_of(request).database, identity_of(request).tenants
    if (latest := await database.read(audits.latest_id)) is not None:
        check_known(request, response, if_none_match, latest)
    return await database.read(lambda tx: audits.audit_view(tx, None, tenants))


@router.get("/audits/{audit}", dependencies=[AUDITED])
async def get_audit(request: Request, audit: PathName) -> AuditView:
    """A published audit with its findings."""
    tenants = identity_of(request).tenants
    return await context_of(request).database.read(lambda tx: audits.audit_view(tx, audit, tenants))
