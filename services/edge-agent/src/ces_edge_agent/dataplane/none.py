"""The network of a node that shapes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ces_common.messages.reports import FlowUsage, LinkUsage
from ces_common.messages.wanted import NetworkWanted


class NoNetwork:
    """Workers use the host's own network: everything applies at once, nothing is routed, shaped or measured."""

    def __init__(self, node: str) -> None:
        self.node = node

    async def open(self) -> None:
        """Nothing to prepare."""

    async def close(self) -> None:
        """Nothing to let go of."""

    async def apply(self, wanted: NetworkWanted, holders: Mapping[str, Path | None]) -> dict[str, str]:
        return {}

    async def usage(self) -> tuple[list[LinkUsage], list[FlowUsage]]:
        return [], []

    async def remove(self) -> None:
        """Nothing was made."""
