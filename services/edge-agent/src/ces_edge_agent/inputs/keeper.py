"""Keeps serving this node's data to whom its wanted network names."""

from __future__ import annotations

import asyncio
import socket
from collections import defaultdict
from collections.abc import Hashable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import structlog

from ces_common.messages.reports import DataReport
from ces_common.messages.wanted import NetworkWanted, Reader
from ces_common.naming import DATA_PORT
from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.files import write_atomically
from ces_edge_agent.inputs.aside import Aside, NoAnswer
from ces_edge_agent.inputs.requests import union
from ces_edge_agent.inputs.server import Grant, InputServer
from ces_edge_agent.inputs.store import Store, Unreadable
from ces_edge_agent.ports import Network

log = structlog.get_logger()
MAX_PORT = 65535
LOOK_S = 10.0  # how long a disk may take to say what is there: as one that has to start turning does


def grants_of(wanted: NetworkWanted) -> dict[str, Grant]:
    """By a reader's address: what it may read, at the rate of its flow's class here, or the most that it may borrow.
    Without a data plane no class is in force, readers have the address of their host, and several may share it: each
    may then read what any of them may, as fast as it goes. Pure."""
    rates = {
        canonical(flow.dst): flow.ceiling or flow.rate
        for flow in wanted.classes
        if flow.kind == "data" and flow.src == wanted.router and wanted.mode == "tc"
    }
    sharing: dict[str, list[Reader]] = defaultdict(list)
    for reader in wanted.readers:
        sharing[canonical(reader.address)].append(reader)
    return {
        address: Grant(union(reader.datasets for reader in readers), rates.get(address), len(readers))
        for address, readers in sharing.items()
    }


def canonical(address: str) -> str:
    """As the kernel writes it: an IPv6 address may be written in many ways."""
    try:
        return str(ip_address(address))
    except ValueError:
        return address  # which nobody connects from


class InputKeeper:
    """``root``: the folder with the datasets, None where the node offers none. ``host_address``: where to serve on a
    node without a data plane, and ``port_file`` keeps the port there, so that a restart does not move it."""

    def __init__(self, node: str, root: Path | None, network: Network, host_address: str, port_file: Path) -> None:
        self._node, self._network, self._host_address, self._port_file = node, network, host_address, port_file
        self._root = root
        self._server = None if root is None else InputServer(Store(root))
        self._look = None if self._server is None else Aside(self._server.store.names, "ces-datasets")
        self._bound: tuple[Hashable, str] | None = None  # what it listens on: the data plane, and the address in it
        self._port = 0  # where it listens, or did, or will; 0: not known yet
        self._complaint = ""  # what was last said of the folder: it is looked at every other second
        self._settled = False  # whether it has been told what is wanted, and serves if it can

    async def follow(self, wanted: NetworkWanted) -> dict[str, str]:
        """Serve those whom the document names, and nobody else. Returns attempt key -> reason where that cannot be."""
        problem = None
        if self._server is None:
            problem = "this node offers no data: CES_DATASETS is not set" if wanted.readers else None
        else:
            self._server.admit(grants_of(wanted))
            problem = await self._listen(self._server, wanted)
        self._settled = True
        return {} if problem is None else {reader.job: problem for reader in wanted.readers}

    async def report(self) -> DataReport | None:
        """What the node offers; None before that is known. The port stays while nothing can be read: workers are told
        it when they start, and what is away for a moment comes back there."""
        if not self._settled:
            return None
        names: list[str] = []
        if self._look is not None and self._bound is not None:
            try:
                names = await self._look.call(LOOK_S)
                self._complaint = ""
            except (Unreadable, NoAnswer) as error:
                if self._complaint != str(error):
                    self._complaint = str(error)
                    log.warning("no data is offered", error=self._complaint, folder=str(self._root))
        return DataReport(node=self._node, port=self._port, datasets=names)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _listen(self, server: InputServer, wanted: NetworkWanted) -> str | None:
        """Why it cannot listen where it should; None where it does."""
        own = wanted.mode == "tc"
        address = wanted.router if own else self._host_address
        if not address:  # which would mean every address
            return "data cannot be served: the node has no address in the data plane"
        place = (self._network.ground, address)
        if place == self._bound:
            return None
        ports = [DATA_PORT] if own else [self._kept_port(), 0]
        try:
            listener = await self._listener(address, ports)
            port = listener.getsockname()[1]
            server.listen(listener)
        except (DataPlaneError, RuntimeError) as error:  # the latter where no thread can be had
            problem = f"data cannot be served: {error}"
            self._port, self._bound = ports[0], None
            log.warning("data cannot be served", error=problem)
            return problem
        self._port, self._bound = port, place
        if not own:
            await asyncio.to_thread(self._keep_port, port)
        log.info("data is served", address=address, port=port)
        return None

    async def _listener(self, address: str, ports: Sequence[int]) -> socket.socket:
        """At the first of the ports that can be had. Raises DataPlaneError."""
        *before, last = ports
        for port in before:
            with suppress(DataPlaneError):
                return await self._network.listen(address, port)
        return await self._network.listen(address, last)

    def _kept_port(self) -> int:
        """0 where none is kept, or none that can be listened at."""
        try:
            port = int(self._port_file.read_text())
        except (OSError, ValueError):
            return 0
        return port if 0 < port <= MAX_PORT else 0

    def _keep_port(self, port: int) -> None:
        """Data is served all the same where the disk is full: only after a restart it may then be elsewhere."""
        if port == self._kept_port():
            return
        try:
            write_atomically(self._port_file, str(port))
        except OSError as error:
            log.warning("the port of the data is not kept", error=str(error), file=str(self._port_file))
