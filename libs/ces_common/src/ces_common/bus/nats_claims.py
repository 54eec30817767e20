"""What the servers are told over the system account: whom to refuse, and that their files have changed."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Final

from ces_common.bus.nats_connection import NatsConnection
from ces_common.bus.port import DEFAULT_TIMEOUT_S, BusError
from ces_common.natsauth import REVOKER, RevocationKey, revoking


class AccountClaims:
    """The list of users whom the servers refuse is part of the account's claims, which they keep and hand on among
    themselves. Connects for each use: it is seldom needed."""

    def __init__(self, servers: Sequence[str], key: RevocationKey, tls: ssl.SSLContext | None = None) -> None:
        self._servers, self._key, self._tls = servers, key, tls
        self._subject: Final = f"$SYS.REQ.ACCOUNT.{key.account}.CLAIMS"

    async def revoke(self, users: Collection[str]) -> bool:
        """Have these users (public keys) refused for good, and disconnected where they are; False where the servers
        did so already. Raises BusUnavailable, AccessRefused, RequestTimeout, and BusError where they do not accept
        it."""
        async with self._connected(self._servers) as connection:
            current = await connection.request(f"{self._subject}.LOOKUP", b"", None, DEFAULT_TIMEOUT_S)
            try:
                desired = revoking(current.data.decode(), self._key.signing_seed, users)
            except (ValueError, KeyError) as error:
                raise BusError(f"the broker's account cannot be read: {error}") from error
            if desired is None:
                return False
            reply = await connection.request(f"{self._subject}.UPDATE", desired.encode(), None, DEFAULT_TIMEOUT_S)
            answer = json.loads(reply.data)
            if answer.get("data", {}).get("code") != 200:
                raise BusError(f"the broker does not take the account's new claims: {answer.get('error', answer)}")
            return True

    async def reload(self) -> None:
        """Have each server read its configuration and certificate again; connections stay. Raises BusError where not
        all could be told, or one does not take what it reads; the others have."""
        failed = []
        for server in self._servers:
            try:
                async with self._connected([server]) as connection:
                    subject = f"$SYS.REQ.SERVER.{connection.server}.RELOAD"
                    reply = await connection.request(subject, b"", None, DEFAULT_TIMEOUT_S)
                if error := json.loads(reply.data).get("error"):
                    failed.append(f"{server} does not take its new files: {error}")
            except BusError as error:
                failed.append(str(error))
        if failed:
            raise BusError("; ".join(failed))

    @asynccontextmanager
    async def _connected(self, servers: Sequence[str]) -> AsyncIterator[NatsConnection]:
        connection = NatsConnection(servers, name=REVOKER, credentials=self._key.credentials, tls=self._tls)
        await connection.connect(DEFAULT_TIMEOUT_S)
        try:
            yield connection
        finally:
            await connection.close()
