"""Who a token belongs to, as this manager knows it: asked of the database at most once in a few seconds."""

from __future__ import annotations

import asyncio
import hmac
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

import structlog
from sqlalchemy import update

from ces_common.db import UNAVAILABLE
from ces_common.db.access_tables import AccessTokenRow
from ces_common.messages.identities import Identity
from ces_manager.access import sessions
from ces_manager.access.provider import JWT, Provider
from ces_manager.access.tokens import ROOT, TOKEN, hash_of, identity_of
from ces_manager.database import Database
from ces_manager.errors import Forbidden

log = structlog.get_logger()
KNOWN_S = 5.0  # after which a token that was revoked at another manager is refused by this one
NOTED_S = 60.0  # between two notes that a token is in use
REMEMBERED = 1024  # tokens


@dataclass(frozen=True, slots=True)
class _Known:
    identity: Identity
    since: float


class Identities:
    """``root``: the secret of whoever set the manager up. ``provider``: whose tokens admit somebody too."""

    def __init__(self, database: Database, root: str, provider: Provider | None = None) -> None:
        self._database, self._root, self._provider = database, root.encode(), provider
        self.root_hash = hash_of(root)
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._forgotten = 0  # how often
        self._noted: dict[str, float] = {}  # token's name -> when its use was noted
        self._notes: set[asyncio.Task[None]] = set()

    def knows(self, token: str) -> bool:
        """Whether the token admitted somebody lately; it may be good no more."""
        return hmac.compare_digest(token.encode(), self._root) or sha256(token.encode()).digest() in self._known

    async def of(self, token: str) -> Identity:
        """Raises Forbidden where the token admits nobody; Unavailable, and what is UNAVAILABLE."""
        if hmac.compare_digest(token.encode(), self._root):
            return ROOT
        key, now = sha256(token.encode()).digest(), self._database.clock.steady()
        known = self._known.get(key)
        if known is not None and now - known.since < KNOWN_S and not self._expired(known.identity):
            self._known.move_to_end(key)
            return known.identity
        forgotten = self._forgotten
        try:
            identity = await self._asked(token, now)
        except Forbidden:
            self._known.pop(key, None)
            raise
        if forgotten == self._forgotten:  # or what was read may be of before
            self._known[key] = _Known(identity, now)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return identity

    async def _asked(self, token: str, now: float) -> Identity:
        if TOKEN.fullmatch(token) is not None:
            time = self._database.clock.now()
            identity = await self._database.read(lambda tx: identity_of(tx, token, time))
            self._note_use(identity.name, now, time)
            return identity
        if sessions.SESSION.fullmatch(token) is not None:
            time = self._database.clock.now()
            return await self._database.read(lambda tx: sessions.identity_of(tx, token, time, self.root_hash))
        if self._provider is not None and JWT.fullmatch(token) is not None:
            return await self._provider.identity(token)
        raise Forbidden("this token is not known here")

    def forget(self, name: str) -> None:
        """Ask again about the token of this name, and about sessions that came from it: it was revoked, or one
        ended."""
        self._forgotten += 1
        self._known = OrderedDict((key, known) for key, known in self._known.items() if known.identity.name != name)

    def _expired(self, identity: Identity) -> bool:
        return identity.expires_at is not None and identity.expires_at <= self._database.clock.now()

    def _note_use(self, name: str, now: float, time: datetime) -> None:
        """Beside the request, which waits for no writer."""
        if now - self._noted.get(name, float("-inf")) < NOTED_S:
            return
        if len(self._noted) > REMEMBERED:
            self._noted.clear()
        self._noted[name] = now
        note = asyncio.create_task(self._write_use(name, _to_the_minute(time)))
        self._notes.add(note)
        note.add_done_callback(self._notes.discard)

    async def _write_use(self, name: str, time: datetime) -> None:
        used = update(AccessTokenRow).where(AccessTokenRow.name == name).values(last_used_at=time)

        def write() -> None:
            with self._database.uow.bare_write() as session:
                session.execute(used)

        try:
            await self._database.in_writer(write)
        except UNAVAILABLE:
            log.warning("the use of a token is not noted: the database does not answer", name=name)


def _to_the_minute(time: datetime) -> datetime:
    return time - timedelta(seconds=time.second, microseconds=time.microsecond)
