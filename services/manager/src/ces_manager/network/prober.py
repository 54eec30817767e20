"""Active probes of links: both ends measure, and the capacity that follows is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from ces_common import subjects
from ces_common.bus.port import LARGEST_REQUEST, Bus, RemoteError
from ces_common.db import ReadTx
from ces_common.db.tables import LinkRow, NodeRow
from ces_common.messages.agent_queries import LinkProbe, LinkProbed
from ces_common.messages.api import LinkProbeView
from ces_manager.database import Database
from ces_manager.errors import Conflict, NotFound
from ces_manager.network import link_states

LEAD_S = 0.2  # by which the far end begins to count before the near one sends, and goes on after it
PATIENCE_S = 5.0  # for an answer, beyond the time that measuring takes
LOSSLESS = 0.93  # share of what was sent that arrives where the link is not the limit: busy ends count at other moments
FULL = 0.95  # share of the configured capacity that is as good as all of it


@dataclass(frozen=True)
class Ends:
    """A link that can be probed. ``bandwidth``: configured, ``measured``: before, in bit/s."""

    bandwidth: int
    measured: int | None


def capacity_found(configured: int, before: int | None, sent: float, received: float) -> int | None:
    """What a link carries in bit/s, from the rates at its two ends; None where nothing is known against the configured
    capacity. What the sender could not fill says only that the link carries no less. Pure."""
    if received < sent * LOSSLESS:
        return max(int(received), 1)
    if sent >= configured * FULL:
        return configured
    return before if before is not None and before > received else None


class Prober:
    """One link at a time, so that no probe measures another. ``turn``: held while one is measured, by one manager of
    all."""

    def __init__(
        self, database: Database, bus: Bus, turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    ) -> None:
        self._database, self._bus, self._turn = database, bus, turn
        self._busy = asyncio.Lock()

    async def probe(self, src: str, dst: str, seconds: float, actor: str | None = None) -> LinkProbeView:
        """``actor``: who asked. Raises NotFound, Conflict, BusError."""
        async with self._busy, self._turn():
            ends = await self._database.read(lambda tx: ends_of(tx, src, dst))
            sent, received = await self._both(src, dst, seconds)
            if not received.rate:
                raise Conflict(f"nothing of the probe of link {src} › {dst} has arrived at {dst}")
            found = capacity_found(ends.bandwidth, ends.measured, sent.rate, received.rate)
            await self._database.write(
                lambda tx: link_states.take_measurement(tx, src, dst, found, sent.round_trip_s), actor
            )
        return LinkProbeView(
            src=src,
            dst=dst,
            bandwidth=ends.bandwidth,
            sent=sent.rate,
            received=received.rate,
            measured=found,
            round_trip_s=sent.round_trip_s,
        )

    async def _both(self, src: str, dst: str, seconds: float) -> tuple[LinkProbed, LinkProbed]:
        """What was sent and what arrived. Where one end fails the other still measures, and would refuse another probe:
        so both are waited for."""
        near = asyncio.ensure_future(self._send(src, dst, seconds))
        far = asyncio.ensure_future(self._ask(dst, src, "receive", seconds + 2 * LEAD_S))
        await asyncio.gather(near, far, return_exceptions=True)
        return near.result(), far.result()

    async def _send(self, src: str, dst: str, seconds: float) -> LinkProbed:
        await asyncio.sleep(LEAD_S)
        return await self._ask(src, dst, "send", seconds)

    async def _ask(self, node: str, peer: str, part: str, seconds: float) -> LinkProbed:
        query = LinkProbe.model_validate({"peer": peer, "part": part, "seconds": seconds})
        subject = subjects.agent_rpc(node, "probe")
        wait_s = seconds + PATIENCE_S
        raw = await self._bus.request(subject, query.encode(), timeout_s=wait_s, largest=LARGEST_REQUEST)
        try:
            return LinkProbed.model_validate_json(raw)
        except ValueError as error:
            raise RemoteError("malformed", f"node {node} answers with what is no measurement") from error


def ends_of(tx: ReadTx, src: str, dst: str) -> Ends:
    """Raises NotFound, and Conflict where the link cannot be probed now."""
    row = tx.session.get(LinkRow, (src, dst))
    if row is None:
        raise NotFound(f"no link {src} › {dst}: ces get links lists those that there are")
    if row.state != "up":
        raise Conflict(f"link {src} › {dst} is down: {row.state_reason or 'no reason given'}")
    for name in (src, dst):
        node = tx.session.get(NodeRow, name)
        if node is None or node.state != "ready":
            raise Conflict(f"node {name} is {'unreachable' if node else 'not there'}; both ends of a link measure it")
        if node.network != "tc":
            raise Conflict(f"node {name} has network {node.network} and measures nothing")
    return Ends(row.bandwidth, row.measured)
