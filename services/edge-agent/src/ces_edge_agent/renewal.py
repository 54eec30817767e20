"""Renewal of the node's credential: long before it ends, over the bus; by the REST API, where it has ended already."""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable
from typing import Final, Protocol

import httpx
import structlog

from ces_common import subjects
from ces_common.bus.port import BusError, Callback
from ces_common.messages.agent_queries import Credential, CredentialQuery
from ces_common.messages.membership import RenewRequest
from ces_common.natsauth import SIGNATURE, Credentials, signature_of
from ces_common.natsauth.jwt import claims_of
from ces_common.natsauth.keys import public_key
from ces_common.service import Hint
from ces_edge_agent.enrolment import Membership

log = structlog.get_logger()
SOON_S: Final = 600.0  # after a start, within which it is renewed: how old it is, a wrong time of day does not tell
LOOK_S: Final = 600.0  # between two looks at the clock, which runs on while the machine sleeps
RETRY_S: Final = 600.0  # at most
OUT_RETRY_S: Final = 60.0  # at most, while the bus does not let the node in
ENDLESS_S: Final = 30 * 86400.0  # what counts as the life of one that never ends, from a manager of a former release
ASK_S: Final = 10.0


class RenewalRefused(Exception):
    """The manager does not renew it; the text says why and what to do."""


class BusWithCredentials(Protocol):
    """What renewal needs of the bus."""

    @property
    def connected(self) -> bool: ...

    async def request(self, subject: str, data: bytes = b"") -> bytes: ...

    def on_refused(self, callback: Callback) -> None: ...

    async def use(self, credentials: Credentials) -> None: ...


class Renewal:
    """``steady``: seconds, also of sleep."""

    def __init__(
        self,
        bus: BusWithCredentials,
        membership: Membership,
        node: str,
        manager_url: str,
        manager_trust: ssl.SSLContext,
        steady: Callable[[], float],
    ) -> None:
        self._bus, self._membership, self._node = bus, membership, node
        self._manager_url, self._manager_trust = manager_url, manager_trust
        self._steady = steady
        self._credentials = membership.held()
        self._out = False  # the bus does not let the node in
        self._hint = Hint()
        bus.on_refused(self._refused)

    async def run(self) -> None:
        wait_s, failures = random.uniform(0, min(SOON_S, life_s(self._credentials.jwt) / 10)), 0
        while True:
            await self._wait(wait_s)
            try:
                if self._bus.connected:
                    await self._take(await self._asked_over_bus())
                    self._out, failures = False, 0
                    wait_s = life_s(self._credentials.jwt) * random.uniform(0.4, 0.5)
                    continue
                if self._out:
                    await self._take(await self._asked_over_rest())
            except RenewalRefused as error:
                log.error("the node's credential is not renewed", error=str(error))
            except (BusError, httpx.HTTPError, OSError, ValueError) as error:
                log.warning("the node's credential could not be renewed yet", error=str(error) or type(error).__name__)
            failures += 1
            longest_s = OUT_RETRY_S if self._out else min(RETRY_S, life_s(self._credentials.jwt) / 20)
            wait_s = min(2.0 ** min(failures, 16), longest_s) * random.uniform(0.5, 1.0)

    async def _refused(self) -> None:
        if not self._out:
            self._out = True
            self._hint.set()

    async def _wait(self, seconds: float) -> None:
        """Ends early once the bus lets the node in no more."""
        until = self._steady() + seconds
        while (left := until - self._steady()) > 0:
            if await self._hint.wait(min(left, LOOK_S)):
                return

    async def _asked_over_bus(self) -> str:
        query = CredentialQuery(public_key=public_key(self._credentials.seed))
        answer = await self._bus.request(subjects.renewal(self._node), query.encode())
        return Credential.model_validate_json(answer).jwt

    async def _asked_over_rest(self) -> str:
        """Raises RenewalRefused, httpx.HTTPError."""
        request = RenewRequest(name=self._node, public_key=public_key(self._credentials.seed))
        body = request.model_dump_json().encode()
        headers = {
            "Content-Type": "application/json",
            SIGNATURE: signature_of(self._credentials.seed, "renew", body),
        }
        async with httpx.AsyncClient(base_url=self._manager_url, timeout=ASK_S, verify=self._manager_trust) as client:
            answer = await client.post("/v1/nodes/renew", content=body, headers=headers)
        if answer.status_code in (403, 404, 422):
            raise RenewalRefused(answer.text)
        answer.raise_for_status()
        return Credential.model_validate_json(answer.content).jwt

    async def _take(self, jwt: str) -> None:
        """Keep it and go on with it. Raises BusError, OSError, ValueError."""
        if claims_of(jwt).get("sub") != public_key(self._credentials.seed):
            raise ValueError("the credential that the manager sent is for another key")
        fresh = Credentials(jwt, self._credentials.seed)
        self._membership.renew(fresh)
        self._credentials = fresh
        await self._bus.use(fresh)
        log.info("the node's credential is renewed", days=round(life_s(jwt) / 86400, 3))


def life_s(jwt: str) -> float:
    """For how long it was issued."""
    try:
        claims = claims_of(jwt)
        return max(float(claims["exp"]) - float(claims["iat"]), 1.0)
    except (KeyError, TypeError, ValueError):
        return ENDLESS_S
