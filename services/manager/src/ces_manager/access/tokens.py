"""Access tokens in the database. Their secrets are long and random, so a plain hash of one tells nothing of it."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from datetime import datetime, timedelta

from sqlalchemy import select
from ulid import ULID

from ces_common.db.access_tables import AccessTokenRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.api import Page
from ces_common.messages.identities import (
    AccessTokenRequest,
    AccessTokenView,
    Identity,
    NewAccessToken,
    TokenChanged,
)
from ces_common.queuefile import QueueFile
from ces_common.roles import Role
from ces_manager.cursors import node_cursor
from ces_manager.errors import Conflict, Forbidden, Invalid, NotFound

ROOT = Identity(name="admin", role=Role.ADMIN)
"""Whoever has the secret that the manager was started with."""
TOKEN = re.compile(r"ces_([0-7][0-9A-HJKMNP-TV-Z]{25})_([A-Za-z0-9_-]{43})")


def create_token(tx: WriteTx, request: AccessTokenRequest, queue: QueueFile, by: str) -> NewAccessToken:
    """Raises Conflict where the name is taken, also by a token of before; Invalid for a tenant that does not exist."""
    if request.name == ROOT.name or tx.session.get(AccessTokenRow, request.name) is not None:
        raise Conflict(f"a token is or was called {request.name}, and events name it; choose another name")
    for i, tenant in enumerate(request.tenants):
        if not queue.admits(tenant):
            raise Invalid(f"tenants[{i}]", f"no tenant is called {tenant!r}: name one of {', '.join(queue.names)}")
    token_id, secret = str(ULID.from_datetime(tx.now)), secrets.token_urlsafe(32)
    row = AccessTokenRow(
        name=request.name,
        id=token_id,
        hash=hash_of(secret),
        role=request.role,
        tenants=request.tenants if request.role.has_tenants else None,
        max_priority=request.max_priority,
        created_at=tx.now,
        created_by=by,
        expires_at=tx.now + timedelta(seconds=request.lasts),
    )
    tx.session.add(row)
    _tell(tx, "created", row)
    return NewAccessToken(token=f"ces_{token_id}_{secret}", access=_view(row))


def revoke_token(tx: WriteTx, name: str) -> AccessTokenView:
    """Refuse the token from now on. One that is revoked stays as it is. Raises NotFound, Conflict."""
    if name == ROOT.name:
        raise Conflict(f"{name} is the token in CES_ADMIN_TOKEN_FILE: write another one there, and restart the manager")
    row = tx.session.get(AccessTokenRow, name)
    if row is None:
        raise NotFound(f"no token is called {name}")
    if row.revoked_at is None:
        row.revoked_at = tx.now
        _tell(tx, "revoked", row)
    return _view(row)


def list_tokens(tx: ReadTx, *, cursor: str | None, limit: int) -> Page[AccessTokenView]:
    """In the order of their names; the cursor is the last name seen."""
    query = select(AccessTokenRow).where(AccessTokenRow.name > (node_cursor(cursor) or ""))
    rows = tx.session.scalars(query.order_by(AccessTokenRow.name).limit(limit + 1)).all()
    page = rows[:limit]
    return Page[AccessTokenView](items=[_view(row) for row in page], next=page[-1].name if len(rows) > limit else None)


def identity_of(tx: ReadTx, token: str, now: datetime) -> Identity:
    """Whose token it is. Raises Forbidden: it is none of ours, has expired or was revoked."""
    found = TOKEN.fullmatch(token)
    row = None
    if found is not None:
        row = tx.session.scalars(select(AccessTokenRow).where(AccessTokenRow.id == found[1])).one_or_none()
    if found is None or row is None or not hmac.compare_digest(row.hash, hash_of(found[2])):
        raise Forbidden("this token is not known here")
    check_good(row, now)
    return Identity.model_validate(row, from_attributes=True)


def check_good(row: AccessTokenRow, now: datetime) -> None:
    """Raises Forbidden: the token has expired or was revoked."""
    if row.revoked_at is not None:
        raise Forbidden(f"this token, {row.name}, was revoked at {row.revoked_at:%Y-%m-%d %H:%M} UTC")
    if row.expires_at <= now:
        raise Forbidden(f"this token, {row.name}, expired at {row.expires_at:%Y-%m-%d %H:%M} UTC; ask for another one")


def hash_of(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _tell(tx: WriteTx, kind: str, row: AccessTokenRow) -> None:
    tx.emit("token", kind, row.id, TokenChanged(name=row.name, role=Role(row.role), tenants=row.tenants))


def _view(row: AccessTokenRow) -> AccessTokenView:
    return AccessTokenView.model_validate(row, from_attributes=True)
