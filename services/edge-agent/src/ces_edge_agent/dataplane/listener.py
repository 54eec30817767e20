"""Sockets that listen at an address of the node, and connections from it."""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path

from ces_edge_agent.dataplane.netlink.namespace import in_namespace
from ces_edge_agent.ports import DataPlaneError

BACKLOG = 64


def open_listener(address: str, port: int, namespace: Path | None = None) -> socket.socket:
    """A listening socket in a namespace, by default the agent's own; port 0 is any. Blocking. Raises DataPlaneError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    make = partial(socket.create_server, (address, port), family=family, backlog=BACKLOG)
    try:
        return make() if namespace is None else in_namespace(namespace, make)
    except OSError as error:
        raise DataPlaneError(f"nothing can listen on {address}, port {port}: {error.strerror}") from error


def open_connection(
    address: str, port: int, source: str, timeout_s: float, namespace: Path | None = None
) -> socket.socket:
    """A connection from a namespace, by default the agent's own; ``source``: the own address, empty for any. Blocking.
    Raises DataPlaneError."""
    own = (source, 0) if source else None
    make = partial(socket.create_connection, (address, port), timeout_s, own)
    try:
        return make() if namespace is None else in_namespace(namespace, make)
    except OSError as error:
        raise DataPlaneError(f"{address}, port {port}, does not answer: {error.strerror or error}") from error
