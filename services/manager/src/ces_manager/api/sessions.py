"""Routes by which the dashboard signs in and out."""

from __future__ import annotations

from fastapi import APIRouter, Request

from ces_common.messages.api import Page
from ces_common.messages.identities import NewSession, SessionCode, SessionRequest, SessionView
from ces_manager.access import sessions
from ces_manager.api.auth import OPERATOR, VIEWER, identity_of
from ces_manager.api.context import context_of
from ces_manager.api.parameters import Cursor, Limit, PathName
from ces_manager.api.strict_route import StrictRoute

router = APIRouter(prefix="/v1", tags=["access"], route_class=StrictRoute)


@router.post("/sessions/codes", status_code=201, dependencies=[VIEWER])
async def create_code(request: Request) -> SessionCode:
    """A code that is good for one minute and once: who has it begins a session with the rights of the token that asks,
    which ends with that token, and after twelve hours at the latest."""
    context, identity = context_of(request), identity_of(request)
    root_hash = context.identities.root_hash
    return await context.database.requested_write(lambda tx: sessions.make_code(tx, identity, root_hash), identity.name)


@router.post("/sessions", status_code=201)
async def open_session(request: Request, body: SessionRequest) -> NewSession:
    """Begin a session of the dashboard with a code. Its token is shown only here."""
    context, now = context_of(request), context_of(request).database.clock.now()
    # Guesses take no writer's turn.
    holder = await context.database.read(lambda tx: sessions.check_code(tx, body.code, now).holder)
    return await context.database.requested_write(lambda tx: sessions.open_session(tx, body.code), holder)


@router.get("/sessions", dependencies=[OPERATOR])
async def list_sessions(request: Request, limit: Limit = 100, cursor: Cursor = None) -> Page[SessionView]:
    """Everybody's sessions of the dashboard that are good, and codes that may begin one, the newest first."""
    database = context_of(request).database
    now = database.clock.now()
    return await database.read(lambda tx: sessions.list_sessions(tx, now, cursor=cursor, limit=limit))


@router.delete("/sessions/{session}", status_code=204, dependencies=[VIEWER])
async def end_session(request: Request, session: PathName) -> None:
    """Sign out: a session is refused from now on, by other managers within five seconds. `mine` is the one that asks;
    by its id, which is a part of its code, its holder's token ends it as well, and an operator's any whose role is not
    above its own."""
    context, identity = context_of(request), identity_of(request)
    holder = await context.database.requested_write(
        lambda tx: sessions.end_session(tx, identity, session), identity.name
    )
    context.identities.forget(holder)
