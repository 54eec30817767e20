"""Serves this node's datasets, and its checkpoints, to the readers that its desired network names."""

from __future__ import annotations

import asyncio
import socket
from collections import defaultdict
from collections.abc import Hashable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import structlog

from ces_common.messages.desired import CheckpointReader, DesiredNetwork, Reader
from ces_common.messages.reports import DataReport
from ces_common.names import DATA_PORT
from ces_edge_agent.files import write_atomically
from ces_edge_agent.inputs.background_call import BackgroundCall, NoAnswer
from ces_edge_agent.inputs.requests import union
from ces_edge_agent.inputs.server import CheckpointStore, Grant, InputServer
from ces_edge_agent.inputs.store import Store, Unreadable
from ces_edge_agent.ports import DataPlaneError, Network

log = structlog.get_logger()
MAX_PORT = 65535
LIST_S = 10.0  # how long a disk may take to list the datasets, such as one that has to spin up


def grants_of(desired: DesiredNetwork) -> dict[str, Grant]:
    """Reader's address -> its grant, at the ceil of its flow's class here, or at its rate if it does not borrow. Pure.

    Without a data plane there are no classes, and readers on one host share an address: each may then read what any of
    them may, at any rate."""
    rates = {
        canonical(flow.dst): flow.ceil or flow.rate
        for flow in desired.classes
        if flow.kind == "data" and flow.src == desired.router and desired.mode == "tc"
    }
    sharing: dict[str, list[Reader]] = defaultdict(list)
    for reader in desired.readers:
        sharing[canonical(reader.address)].append(reader)
    nodes: dict[str, list[CheckpointReader]] = defaultdict(list)
    for node in desired.checkpoint_readers:
        nodes[canonical(node.address)].append(node)
    return {
        address: Grant(
            union(reader.datasets for reader in sharing[address]) if address in sharing else None,
            rates.get(address),
            len(sharing.get(address, ())) + len(nodes.get(address, ())),
            tuple(nodes.get(address, ())),
        )
        for address in sharing.keys() | nodes.keys()
    }


def canonical(address: str) -> str:
    """The address as the kernel writes it; an IPv6 address can be written in many ways."""
    try:
        return str(ip_address(address))
    except ValueError:
        return address  # nobody connects from it


class InputService:
    """``root``: the folder with the datasets, None if the node offers none. A node without a data plane serves at
    ``host_address``, on a port kept in ``port_file`` through restarts."""

    def __init__(
        self,
        node: str,
        root: Path | None,
        network: Network,
        host_address: str,
        port_file: Path,
        checkpoints: CheckpointStore | None = None,
    ) -> None:
        self._node, self._network, self._host_address, self._port_file = node, network, host_address, port_file
        self._root = root
        store = None if root is None else Store(root)
        self._server = InputServer(store, checkpoints, node)
        self._names = None if store is None else BackgroundCall(store.names, "ces-datasets")
        self._bound: tuple[Hashable, str] | None = None  # data plane and address where it listens
        self._port = 0  # where it listens, did or will; 0: not known yet
        self._complaint = ""  # the last warning about the folder, so that it is not repeated every other second
        self._followed = False  # whether a document has arrived

    async def follow(self, desired: DesiredNetwork) -> dict[str, str]:
        """Serve the readers that the document names, and no others. Returns attempt key -> reason for those it
        cannot."""
        problem = None
        self._server.admit(grants_of(desired))
        if self._names is not None or desired.checkpoint_readers:
            problem = await self._listen(self._server, desired)
        if self._names is None and desired.readers:
            problem = "this node offers no data: CES_DATASETS is not set"
        self._followed = True
        return {} if problem is None else {reader.job: problem for reader in desired.readers}

    async def report(self) -> DataReport | None:
        """The datasets that the node offers; None before that is known. The port stays the same while nothing can be
        read, since workers learn it when they start."""
        if not self._followed:
            return None
        names: list[str] = []
        if self._names is not None and self._bound is not None:
            try:
                names = await self._names.call(LIST_S)
                self._complaint = ""
            except (Unreadable, NoAnswer) as error:
                if self._complaint != str(error):
                    self._complaint = str(error)
                    log.warning("no data is offered", error=self._complaint, folder=str(self._root))
        return DataReport(node=self._node, port=self._port, datasets=names)

    def close(self) -> None:
        self._server.close()

    async def _listen(self, server: InputServer, desired: DesiredNetwork) -> str | None:
        """Listen where the document says. Returns why it cannot; None if it does."""
        own = desired.mode == "tc"
        address = desired.router if own else self._host_address
        if not address:  # an empty address would mean all
            return "data cannot be served: the node has no address in the data plane"
        place = (self._network.identity, address)
        if place == self._bound:
            return None
        ports = [DATA_PORT] if own else [self._kept_port(), 0]
        try:
            listener = await self._listener(address, ports)
            port = listener.getsockname()[1]
            server.listen(listener)
        except (DataPlaneError, RuntimeError) as error:  # RuntimeError: no thread could be started
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
        """A socket at the first of the ports that is free. Raises DataPlaneError."""
        *before, last = ports
        for port in before:
            with suppress(DataPlaneError):
                return await self._network.listen(address, port)
        return await self._network.listen(address, last)

    def _kept_port(self) -> int:
        """The port in the file; 0 if there is none that is valid."""
        try:
            port = int(self._port_file.read_text())
        except (OSError, ValueError):
            return 0
        return port if 0 < port <= MAX_PORT else 0

    def _keep_port(self, port: int) -> None:
        """If the disk is full, data is served all the same, but a restart may change the port."""
        if port == self._kept_port():
            return
        try:
            write_atomically(self._port_file, str(port))
        except OSError as error:
            log.warning("the port of the data is not kept", error=str(error), file=str(self._port_file))
