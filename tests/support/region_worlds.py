"""Regions in memory: a federation service of each, on a bus of its own and a wire that all share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from memory_bus import MemoryBroker, MemoryBus

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.messages.regions import Room, Totals
from ces_federation.peers import PeersFile
from ces_federation.service import Federation
from ces_federation.settings import FederationSettings

TOTALS = Totals(
    epoch="e",
    nodes=2,
    free=Room(cpu=4000, memory=2**33),
    total=Room(cpu=8000, memory=2**34),
    largest=Room(cpu=2000, memory=2**32),
)
Say = Callable[[Message], Awaitable[bytes]]


def token(one: str, other: str) -> str:
    return f"a secret that no third one knows, of {'-'.join(sorted((one, other)))}"


def block(region: str) -> IPv4Network:
    return IPv4Network(f"10.{64 + ord(region) - ord('a')}.0.0/16")


class Region:
    """One region. ``now``: its steady clock. ``policy``: the file of the one by which it chooses others; None: it does
    so by the rule."""

    def __init__(self, name: str, wire: MemoryBroker, others: str, policy: Path | None = None, **trust: Any) -> None:
        self.name, self.now = name, 0.0
        self._says: dict[str, bytes | Say] = {}
        self.bus, self.wire_bus = MemoryBus(MemoryBroker()), MemoryBus(wire)
        settings = FederationSettings(
            region=name,
            regions_file=Path("unused"),
            wire_creds=Path("unused"),
            address_block=block(name),
            region_choice="rule" if policy is None else "policy",
            region_policy=policy,
        )
        peers = PeersFile.model_validate(
            {"peers": {o: {"token": token(name, o), **trust} for o in others if o != name}}
        )
        self.peers = peers.peers
        self.federation = Federation(self.bus, self.wire_bus, settings, self.peers, lambda: self.now)

    async def start(self) -> None:
        await self.bus.connect()
        await self.wire_bus.connect()
        await self.manager_says("region-totals", TOTALS.encode())
        await self.federation.begin()

    async def manager_says(self, question: str, answer: bytes | Say) -> None:
        """From now on."""
        known = question in self._says
        self._says[question] = answer
        if not known:
            await self.bus.serve(subjects.rpc("manager", question), lambda message: self._say(question, message))

    async def _say(self, question: str, message: Message) -> bytes:
        answer = self._says[question]
        return answer if isinstance(answer, bytes) else await answer(message)

    async def close(self) -> None:
        await self.federation.close()
        await self.bus.close()
        await self.wire_bus.close()
