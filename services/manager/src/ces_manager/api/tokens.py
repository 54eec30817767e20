"""Routes about who may ask for what: access tokens, and whose the one is that was sent."""

from __future__ import annotations

from fastapi import APIRouter, Request

from ces_common.messages.api import Page
from ces_common.messages.identities import AccessTokenRequest, AccessTokenView, Identity, NewAccessToken
from ces_manager.access import tokens
from ces_manager.api.auth import ADMIN, AUDITED, identity_of
from ces_manager.api.context import context_of
from ces_manager.api.parameters import Cursor, Limit, PathName
from ces_manager.api.strict_route import StrictRoute
from ces_manager.errors import Forbidden

router = APIRouter(prefix="/v1", tags=["access"], route_class=StrictRoute)


@router.get("/whoami", dependencies=[AUDITED])
async def whoami(request: Request) -> Identity:
    """Whose token was sent, and what it allows."""
    return identity_of(request)


@router.post("/tokens", status_code=201, dependencies=[ADMIN])
async def create_token(request: Request, body: AccessTokenRequest) -> NewAccessToken:
    """An access token. Its secret is shown only here."""
    context, by = context_of(request), identity_of(request).name
    if identity_of(request).session is not None:
        raise Forbidden("a session of the dashboard makes no access token, which would outlive it: ask with a token")
    made = await context.database.requested_write(lambda tx: tokens.create_token(tx, body, context.queue, by), by)
    return made.model_copy(update={"token": context.pinned(made.token)})


@router.get("/tokens", dependencies=[ADMIN])
async def list_tokens(request: Request, limit: Limit = 100, cursor: Cursor = None) -> Page[AccessTokenView]:
    """Access tokens, also those that are good no more, without their secrets."""
    return await context_of(request).database.read(lambda tx: tokens.list_tokens(tx, cursor=cursor, limit=limit))


@router.delete("/tokens/{token}", dependencies=[ADMIN])
async def revoke_token(request: Request, token: PathName) -> AccessTokenView:
    """Refuse an access token, by its name: this manager does so at once, others within five seconds."""
    context, by = context_of(request), identity_of(request).name
    try:
        return await context.database.requested_write(lambda tx: tokens.revoke_token(tx, token), by)
    finally:  # also where it is not known whether it was written
        context.identities.forget(token)
