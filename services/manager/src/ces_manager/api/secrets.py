"""Routes about secrets of tenants. Nobody is told a value again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from ces_common.fields import FILE_NAME, NAME
from ces_common.messages.api import Page
from ces_common.messages.secrets import SecretValue, SecretView
from ces_manager.access.allowance import tenant_for
from ces_manager.api.auth import SUBMITTER, VIEWER, identity_of
from ces_manager.api.context import context_of
from ces_manager.api.parameters import Cursor, Limit
from ces_manager.api.strict_route import StrictRoute
from ces_manager.job_secrets import store
from ces_manager.jobs.admission import check_tenant

router = APIRouter(prefix="/v1", tags=["secrets"], route_class=StrictRoute)
SecretPath = Annotated[str, Path(pattern=FILE_NAME)]
Tenant = Annotated[str | None, Query(pattern=NAME)]


@router.put("/secrets/{secret}", dependencies=[SUBMITTER])
async def put_secret(request: Request, secret: SecretPath, body: SecretValue, tenant: Tenant = None) -> SecretView:
    """Store a secret of a tenant, in place of another of its name; nobody is shown it again. `tenant`: left out, that
    of the token."""
    context, identity = context_of(request), identity_of(request)
    owner = tenant_for(identity, tenant)
    check_tenant(context.queue, owner)
    return await context.database.requested_write(
        lambda tx: store.put_secret(tx, context.secret_keys, owner, secret, body.value, identity.name), identity.name
    )


@router.get("/secrets", dependencies=[VIEWER])
async def list_secrets(request: Request, limit: Limit = 100, cursor: Cursor = None) -> Page[SecretView]:
    """The names of stored secrets, and who stored them when; never what is in them."""
    tenants = identity_of(request).tenants
    return await context_of(request).database.read(
        lambda tx: store.list_secrets(tx, tenants=tenants, cursor=cursor, limit=limit)
    )


@router.delete("/secrets/{secret}", dependencies=[SUBMITTER])
async def remove_secret(request: Request, secret: SecretPath, tenant: Tenant = None) -> SecretView:
    """Remove a secret. Workers that run keep what they were given; those that need it and start later fail."""
    context, identity = context_of(request), identity_of(request)
    owner = tenant_for(identity, tenant)
    return await context.database.requested_write(lambda tx: store.remove_secret(tx, owner, secret), identity.name)
