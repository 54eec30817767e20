"""The list of users whom the servers refuse: part of the account's claims, which the servers keep and hand on among
themselves."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Final

from ces_common.bus.nats_connection import NatsConnection
from ces_common.bus.port import DEFAULT_TIMEOUT_S, BusError
from ces_common.natsauth import REVOKER, RevocationKey, revoking


class AccountClaims:
    """Connects for each use: it is seldom needed."""

    def __init__(self, servers: Sequence[str], key: RevocationKey) -> None:
        self._servers, self._key = servers, key
        self._subject: Final = f"$SYS.REQ.ACCOUNT.{key.account}.CLAIMS"

    async def revoke(self, users: Collection[str]) -> bool:
        """Have these users (public keys) refused for good, and disconnected where they are; False where the servers
        did so already. Raises BusUnavailable, AccessRefused, RequestTimeout, and BusError where they do not accept
        it."""
        connection = NatsConnection(self._servers, name=REVOKER, credentials=self._key.credentials)
        await connection.connect(DEFAULT_TIMEOUT_S)
        try:
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
        finally:
            await connection.close()
