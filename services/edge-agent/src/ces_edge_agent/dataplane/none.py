"""The network of a node that shapes nothing."""

from __future__ import annotations

import socket
from collections.abc import Hashable, Mapping
from pathlib import Path

from ces_common.messages.queries import LinkProbe, LinkProbed
from ces_common.messages.reports import FlowUsage, LinkStatus, LinkUsage
from ces_common.messages.wanted import NetworkWanted
from ces_common.service import Hint
from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.listening import open_listener


class NoNetwork:
    """Workers use the host's own network: everything applies at once, nothing is routed, shaped or measured."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.link_news = Hint()

    async def open(self) -> None:
        """Nothing to prepare."""

    async def close(self) -> None:
        """Nothing to let go of."""

    async def apply(self, wanted: NetworkWanted, holders: Mapping[str, Path | None]) -> dict[str, str]:
        return {}

    async def usage(self) -> tuple[list[LinkUsage], list[FlowUsage]]:
        return [], []

    async def links(self) -> list[LinkStatus]:
        return []

    async def probe(self, query: LinkProbe) -> LinkProbed:
        raise DataPlaneError("a node with network none measures nothing")

    @property
    def ground(self) -> Hashable:
        return None

    async def listen(self, address: str, port: int) -> socket.socket:
        return open_listener(address, port)

    async def remove(self) -> None:
        """Nothing was made."""
