"""The network of a node without a data plane."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Hashable

from ces_common.messages.agent_queries import LinkProbe, LinkProbed
from ces_common.messages.desired import DesiredNetwork
from ces_common.messages.reports import FlowUsage, LinkKeys, LinkStatus, LinkUsage
from ces_common.service import Hint
from ces_edge_agent.dataplane.listener import open_connection, open_listener
from ces_edge_agent.ports import DataPlaneError, SandboxNamespaces


class NoNetwork:
    """Workers use the host's own network: everything applies at once, nothing is routed, shaped or measured."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.links_changed = Hint()

    async def open(self) -> None:
        """Nothing to prepare."""

    async def close(self) -> None:
        """Nothing to release."""

    async def apply(self, desired: DesiredNetwork, sandboxes: SandboxNamespaces) -> dict[str, str]:
        return {}

    async def usage(self) -> tuple[list[LinkUsage], list[FlowUsage]]:
        return [], []

    async def links(self) -> list[LinkStatus]:
        return []

    async def encryption(self) -> LinkKeys | None:
        return None

    async def rotate_key(self) -> None:
        raise DataPlaneError("a node with network none has no links to encrypt")

    async def probe(self, query: LinkProbe) -> LinkProbed:
        raise DataPlaneError("a node with network none measures nothing")

    @property
    def identity(self) -> Hashable:
        return None

    async def listen(self, address: str, port: int) -> socket.socket:
        return open_listener(address, port)

    async def dial(self, address: str, port: int, source: str, timeout_s: float) -> socket.socket:
        return await asyncio.to_thread(open_connection, address, port, source, timeout_s)

    async def remove(self) -> None:
        """Nothing to remove."""
