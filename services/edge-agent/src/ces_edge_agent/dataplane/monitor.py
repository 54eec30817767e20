"""News of devices: rtnetlink's notifications of one namespace, rtnetlink(7). What happened is not read from them, only
that something did: whoever is told looks for himself, so that a lost notification loses nothing but time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.namespace import in_namespace

RTMGRP_LINK = 1
READ_SIZE = 65536


def open_monitor(path: Path) -> socket.socket:
    """A socket that becomes readable when a device of the namespace changes. Blocking. Raises DataPlaneError."""

    def make() -> socket.socket:
        opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE)
        try:
            opened.bind((0, RTMGRP_LINK))
        except OSError:
            opened.close()
            raise
        return opened

    try:
        return in_namespace(path, make)
    except OSError as error:
        raise DataPlaneError(f"changes in network namespace {path} cannot be heard: {error.strerror}") from error


def listen(monitor: socket.socket, changed: Callable[[], None]) -> None:
    """Call ``changed`` in the running event loop for each burst of notifications, until ``hang_up``."""

    def drain() -> None:
        try:
            while monitor.recv(READ_SIZE):
                pass
        except BlockingIOError:
            pass
        except OSError:  # more came than the socket holds (ENOBUFS): that, too, is news
            pass
        changed()

    asyncio.get_running_loop().add_reader(monitor, drain)


def hang_up(monitor: socket.socket) -> None:
    asyncio.get_running_loop().remove_reader(monitor)
    monitor.close()
