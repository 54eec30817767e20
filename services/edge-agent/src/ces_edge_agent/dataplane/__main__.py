"""``python -m ces_edge_agent.dataplane NODE NAMESPACE``: a node's data plane without the rest of its agent.

For benchmarks, and for trying documents out. Each line of the standard input is an order, each line of the standard
output its answer, both JSON: ``{"wanted": DOCUMENT, "holders": {ALLOCATION: NAMESPACE FILE}}`` is answered with
``{"failed": {ATTEMPT: REASON}}``, and ``{"remove": true}`` takes everything down. Between orders it measures and mends
as an agent does. It ends with its input and leaves in place what is there.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import structlog
from pydantic import BaseModel

from ces_common.messages.wanted import NetworkWanted
from ces_common.telemetry import configure_logging
from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.tc_network import TcNetwork
from ces_edge_agent.network import MEND_S
from ces_edge_agent.ports import Network

log = structlog.get_logger()

LARGEST_ORDER = 1 << 24  # bytes
REPORT_S = 2.0  # how often an agent reports what it has measured


class Order(BaseModel):
    wanted: NetworkWanted
    holders: dict[str, Path | None]


class Orders:
    """One order at a time; what was last wanted is kept up in between."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._last: Order | None = None

    async def obey(self, order: Any) -> dict[str, Any]:
        """Raises ValueError for a malformed order, DataPlaneError where nothing can be taken down."""
        if isinstance(order, dict) and order.get("remove"):
            self._last = None
            await self._network.remove()
            return {"failed": {}}
        self._last = Order.model_validate(order)
        return {"failed": await self._network.apply(self._last.wanted, self._last.holders)}

    async def keep(self) -> None:
        reports = 0
        while True:
            await asyncio.sleep(REPORT_S)
            reports += 1
            try:
                await self._network.usage()
                if self._last is not None and reports % round(MEND_S / REPORT_S) == 0:
                    await self._network.apply(self._last.wanted, self._last.holders)
            except DataPlaneError as error:
                log.warning("neither measured nor mended", error=str(error))


async def main(node: str, namespace: str) -> None:
    configure_logging("dataplane", "warning")
    network = TcNetwork(node, namespace)
    await network.open()
    orders = Orders(network)
    keeping = asyncio.create_task(orders.keep())
    reader = asyncio.StreamReader(limit=LARGEST_ORDER)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        while line := await reader.readline():
            print(json.dumps(await orders.obey(json.loads(line))), flush=True)
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await network.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: python -m ces_edge_agent.dataplane NODE NAMESPACE")
    asyncio.run(main(*sys.argv[1:]))
