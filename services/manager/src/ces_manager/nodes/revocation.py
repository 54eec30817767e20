"""Revocation: keeps the broker's list of refused users equal to the database's. The broker may have lost it, or was
away when a node was forgotten or a device replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Literal, Protocol

import structlog
from sqlalchemy import select

from ces_common.bus.port import BusError
from ces_common.db import UNAVAILABLE, cause_of
from ces_common.db.tables import RevokedKeyRow
from ces_common.db.uow import ReadTx
from ces_common.service import Hint
from ces_manager.database import Database

log = structlog.get_logger()
LOOK_S = 300.0
RETRY_S = 5.0
Outcome = Literal["revoked", "pending", "kept"]


class Claims(Protocol):
    async def revoke(self, users: Collection[str]) -> bool:
        """Have these public keys refused; False where they were already. Raises BusError."""


class Revoker:
    """``hint`` it when the broker may have become another. ``claims``: None where there is no key to revoke with."""

    def __init__(self, database: Database, claims: Claims | None) -> None:
        self._database, self._claims = database, claims
        self._one_at_a_time = asyncio.Lock()
        self.hint = Hint()

    async def run(self) -> None:
        while True:
            outcome = await self.apply()
            await self.hint.wait(RETRY_S if outcome == "pending" else LOOK_S)

    async def reconnected(self) -> None:
        self.hint.set()

    async def apply(self) -> Outcome:
        """Tell the broker, where it does not know yet."""
        if self._claims is None:
            return "kept"
        async with self._one_at_a_time:
            try:
                keys = await self._database.read(revoked_keys)
                if keys and await self._claims.revoke(keys):
                    log.info("the broker refuses forgotten and replaced devices", keys=len(keys))
            except BusError as error:
                log.warning("the broker could not be told whom to refuse", error=str(error))
                return "pending"
            except UNAVAILABLE as error:
                log.warning("the database does not answer", error=cause_of(error))
                return "pending"
        return "revoked"


def revoked_keys(tx: ReadTx) -> list[str]:
    """The public keys of all nodes that were forgotten, and of devices that were replaced."""
    return list(tx.session.scalars(select(RevokedKeyRow.public_key).order_by(RevokedKeyRow.public_key)))
