"""Sessions of the dashboard: whoever holds a token asks for a one-time code, a browser begins a session with it, and
the token itself never reaches the browser's storage. A session may do what its token may, and ends with it."""

from __future__ import annotations

import hmac
import re
import secrets
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select
from ulid import ULID

from ces_common.db.access_tables import AccessTokenRow, SessionRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.api import Page
from ces_common.messages.identities import Identity, NewSession, SessionChanged, SessionCode, SessionView
from ces_common.roles import Role
from ces_manager.access.grants import OF_PROVIDER
from ces_manager.access.tokens import ROOT, check_good, hash_of
from ces_manager.cursors import job_cursor
from ces_manager.errors import Conflict, Forbidden, NotFound, Overloaded

CODE_LASTS = timedelta(minutes=1)
LASTS = timedelta(hours=12)
MAX_SESSIONS = 64  # of one holder, with codes that were not used yet
MINE = "mine"
_REST = r"_([0-7][0-9A-HJKMNP-TV-Z]{25})_([A-Za-z0-9_-]{43})"
SESSION = re.compile("ces_session" + _REST)
CODE = re.compile("ces_code" + _REST)


def make_code(tx: WriteTx, identity: Identity, root_hash: str) -> SessionCode:
    """A code for whoever asks with a token. Raises Conflict where a session asks: it would go on without end;
    Overloaded."""
    if identity.session is not None:
        raise Conflict("a session begins no other one: ask with an access token")
    mine = SessionRow.holder == identity.name
    tx.session.execute(delete(SessionRow).where(mine, SessionRow.expires_at <= tx.now))
    if (tx.session.scalar(select(func.count()).select_from(SessionRow).where(mine)) or 0) >= MAX_SESSIONS:
        raise Overloaded(f"{MAX_SESSIONS} sessions and codes of {identity.name} are good now: sign out of some")
    session, secret = str(ULID.from_datetime(tx.now)), secrets.token_urlsafe(32)
    expires_at = _sooner(tx.now + CODE_LASTS, identity.expires_at)
    row = SessionRow(
        id=session,
        hash=hash_of(secret),
        holder=identity.name,
        role=identity.role,
        tenants=identity.tenants,
        max_priority=identity.max_priority,
        root_hash=root_hash if identity.name == ROOT.name else None,
        expires_at=expires_at,
        holder_expires_at=identity.expires_at,
    )
    tx.session.add(row)
    return SessionCode(code=f"ces_code_{session}_{secret}", expires_at=expires_at)


def check_code(tx: ReadTx, code: str, now: datetime) -> SessionRow:
    """The session that the code begins. Raises Forbidden."""
    row = _row(tx, CODE.fullmatch(code))
    if row is None or row.opened_at is not None or row.expires_at <= now:
        raise Forbidden("this code was used, or is older than a minute: `ces dashboard` makes another one")
    return row


def open_session(tx: WriteTx, code: str) -> NewSession:
    """Begin the session; the code is good no more. Raises Forbidden."""
    row, secret = check_code(tx, code, tx.now), secrets.token_urlsafe(32)
    row.hash, row.opened_at = hash_of(secret), tx.now
    row.expires_at = _sooner(tx.now + LASTS, row.holder_expires_at)
    _tell(tx, "begun", row)
    token = f"ces_session_{row.id}_{secret}"
    return NewSession(token=token, expires_at=row.expires_at, identity=_identity(row))


def end_session(tx: WriteTx, identity: Identity, session: str) -> str:
    """Refuse a session, or a code, from now on: ``MINE`` or, by its id, any of the same holder; an operator also those
    of others who may do no more. Returns whose it was. Raises NotFound, Forbidden, Conflict."""
    if session == MINE and identity.session is None:
        raise Conflict("this token is no session of the dashboard, so there is nothing to end")
    row = tx.session.get(SessionRow, identity.session if session == MINE else session)
    operates = identity.role.includes(Role.OPERATOR)
    if row is None or (row.holder != identity.name and not operates):
        raise NotFound(f"there is no session {session}" if operates else f"{identity.name} has no session {session}")
    if row.holder != identity.name and not identity.role.includes(Role(row.role)):
        raise Forbidden(f"this session has the role {row.role}, and token {identity.name} has {identity.role}")
    tx.session.delete(row)
    if row.opened_at is not None:  # nobody heard of a code
        _tell(tx, "ended", row)
    return row.holder


def list_sessions(tx: ReadTx, now: datetime, *, cursor: str | None, limit: int) -> Page[SessionView]:
    """Those that are good, and codes that may begin one, the newest first; the cursor is the last id seen."""
    query = select(SessionRow).where(SessionRow.expires_at > now).order_by(SessionRow.id.desc()).limit(limit + 1)
    if (last := job_cursor(cursor)) is not None:
        query = query.where(SessionRow.id < last)
    rows = tx.session.scalars(query).all()
    page = rows[:limit]
    items = [SessionView.model_validate(row, from_attributes=True) for row in page]
    return Page[SessionView](items=items, next=page[-1].id if len(rows) > limit else None)


def identity_of(tx: ReadTx, token: str, now: datetime, root_hash: str) -> Identity:
    """Whose session it is. Raises Forbidden: it is none, has ended, or the token that it came from is good no more."""
    row = _row(tx, SESSION.fullmatch(token))
    if row is None or row.opened_at is None:
        raise Forbidden("this session is not known here: it has ended, or was signed out")
    if row.expires_at <= now:
        raise Forbidden("this session has ended; sign in again")
    if row.root_hash is not None:
        if not hmac.compare_digest(row.root_hash, root_hash):
            raise Forbidden("the token in CES_ADMIN_TOKEN_FILE is another one by now; sign in again")
    elif not row.holder.startswith(OF_PROVIDER):  # whose tokens end soon, and the session with them
        holder = tx.session.get(AccessTokenRow, row.holder)
        if holder is None:
            raise Forbidden("the token that this session came from is not known here")
        check_good(holder, now)
    return _identity(row)


def _tell(tx: WriteTx, kind: str, row: SessionRow) -> None:
    tx.emit("session", kind, row.id, SessionChanged(holder=row.holder, role=Role(row.role), tenants=row.tenants))


def _row(tx: ReadTx, found: re.Match[str] | None) -> SessionRow | None:
    """The session with this id, if the secret is the one that it has now."""
    row = None if found is None else tx.session.get(SessionRow, found[1])
    return row if found is not None and row is not None and hmac.compare_digest(row.hash, hash_of(found[2])) else None


def _identity(row: SessionRow) -> Identity:
    return Identity(
        name=row.holder,
        role=Role(row.role),
        tenants=row.tenants,
        max_priority=row.max_priority,
        expires_at=row.expires_at,
        session=row.id,
    )


def _sooner(time: datetime, other: datetime | None) -> datetime:
    return time if other is None else min(time, other)
