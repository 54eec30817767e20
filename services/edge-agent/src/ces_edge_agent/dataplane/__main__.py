"""``python -m ces_edge_agent.dataplane NODE NAMESPACE [KEYS PORT]``: a node's data plane without the rest of its agent.

For benchmarks, and for trying documents out. Each line of standard input is a request, each line of standard output
its answer, both JSON: ``{"desired": DOCUMENT, "sandboxes": {ALLOCATION: NAMESPACE FILE}}`` is answered with
``{"failed": {ATTEMPT: REASON}}``, and ``{"remove": true}`` takes everything down. Between requests it measures and
repairs as an agent does. With a file for its own keys and a port, it can encrypt links, and answers ``{"keys": true}``
with the public ones that neighbours need. ``{"links": true}`` is answered with the states of links that are known. It
exits at the end of its input, and leaves the data plane in place.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import structlog
from pydantic import BaseModel

from ces_common.logs import configure_logging
from ces_common.messages.desired import DesiredNetwork
from ces_edge_agent.dataplane.tc_network import TcNetwork
from ces_edge_agent.dataplane.wireguard.tunnels import TunnelSettings
from ces_edge_agent.ports import DataPlaneError, Network
from ces_edge_agent.reconcilers.network import REPAIR_S

log = structlog.get_logger()

LARGEST_REQUEST = 1 << 24  # bytes
KEY_LIFE_S = 30 * 86400.0
REPORT_S = 2.0  # how often an agent reports what it has measured


class ApplyRequest(BaseModel):
    desired: DesiredNetwork
    sandboxes: dict[str, str | None]


class RequestHandler:
    """Takes one request at a time; ``keep`` repairs the data plane in between."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._last: ApplyRequest | None = None

    async def answer(self, request: Any) -> dict[str, Any]:
        """Raises ValueError for a malformed request, DataPlaneError where the data plane cannot be taken down."""
        if isinstance(request, dict) and request.get("remove"):
            self._last = None
            await self._network.remove()
            return {"failed": {}}
        if isinstance(request, dict) and request.get("keys"):
            told = await self._network.encryption()
            return {"keys": told.keys if told is not None else []}
        if isinstance(request, dict) and request.get("links"):
            return {"links": {each.peer: each.state for each in await self._network.links()}}
        self._last = ApplyRequest.model_validate(request)
        return {"failed": await self._network.apply(self._last.desired, self._last.sandboxes)}

    async def keep(self) -> None:
        """Measure and repair until cancelled."""
        reports = 0
        while True:
            await asyncio.sleep(REPORT_S)
            reports += 1
            try:
                await self._network.usage()
                if self._last is not None and reports % round(REPAIR_S / REPORT_S) == 0:
                    await self._network.apply(self._last.desired, self._last.sandboxes)
            except DataPlaneError as error:
                log.warning("neither measured nor repaired", error=str(error))


async def main(node: str, namespace: str, keys: str | None = None, port: str = "0") -> None:
    configure_logging("dataplane", "warning")
    tunnels = TunnelSettings(Path(keys), int(port), KEY_LIFE_S) if keys is not None else None
    network = TcNetwork(node, namespace, tunnels=tunnels)
    await network.open()
    handler = RequestHandler(network)
    keeping = asyncio.create_task(handler.keep())
    reader = asyncio.StreamReader(limit=LARGEST_REQUEST)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        while line := await reader.readline():
            print(json.dumps(await handler.answer(json.loads(line))), flush=True)
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await network.close()


if __name__ == "__main__":
    if len(sys.argv) not in (3, 5):
        raise SystemExit("usage: python -m ces_edge_agent.dataplane NODE NAMESPACE [KEYS PORT]")
    asyncio.run(main(*sys.argv[1:]))
