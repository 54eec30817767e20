"""Limits how often somebody may fail to join or to renew a credential: nobody needs to be anybody to ask for it."""

from __future__ import annotations

import math
import time
from collections import Counter
from ipaddress import IPv6Address, ip_network
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ces_manager.api.auth import AGENTS
from ces_manager.api.problems import problem

FAILURES_PER_S, BURST = 1.0, 50  # of one address
MOST_ADDRESSES: Final = 10_000
FAILURES: Final = frozenset({400, 403, 413, 415, 422})


class FailureCounts:
    """Failures by address: ``per_s`` in the long run, ``burst`` at once. Pure."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._gap_s, self._ahead_s = 1 / per_s, burst / per_s
        self._due: dict[str, float] = {}  # address -> when all its failures would have happened evenly

    def wait_s(self, address: str, now: float) -> float:
        """How long the address must wait before it may try again; 0 where it may now."""
        ahead = self._due.get(address, now) - now
        return max(ahead + self._gap_s - self._ahead_s, 0.0)

    def failed(self, address: str, now: float) -> None:
        due = max(self._due.pop(address, now), now) + self._gap_s
        self._due[address] = due  # in the order in which they failed last
        if len(self._due) > MOST_ADDRESSES:
            self._due = {key: until for key, until in self._due.items() if until > now}
        if len(self._due) > MOST_ADDRESSES:
            del self._due[next(iter(self._due))]


class FailedAttempts:
    """Has those wait who failed too often, before anything of what they send is read. What succeeds counts for nothing,
    however often: many agents may share an address. Nobody has more under way than may fail at once."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._counts = FailureCounts(FAILURES_PER_S, BURST)
        self._under_way: Counter[str] = Counter()  # by address; each may fail yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in AGENTS:
            await self._app(scope, receive, send)
            return
        address = _network_of(scope["client"][0]) if scope.get("client") else ""
        wait_s, text = self._counts.wait_s(address, time.monotonic()), "too many attempts from this address have failed"
        if self._under_way[address] >= BURST:
            wait_s, text = max(wait_s, 1.0), "too many attempts from this address are under way"
        if wait_s > 0:
            answer = problem(429, text, headers={"Retry-After": str(math.ceil(wait_s))})
            await answer(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in FAILURES:
                self._counts.failed(address, time.monotonic())
            await send(message)

        self._under_way[address] += 1
        try:
            await self._app(scope, receive, counted)
        finally:
            self._under_way[address] -= 1
            if not self._under_way[address]:
                del self._under_way[address]


def _network_of(address: str) -> str:
    """Whoever has one IPv6 address has all of its network's."""
    try:
        network = ip_network(address)
    except ValueError:
        return address
    if not isinstance(network.network_address, IPv6Address):
        return address
    mapped = network.network_address.ipv4_mapped
    return str(network.supernet(new_prefix=64)) if mapped is None else str(mapped)
