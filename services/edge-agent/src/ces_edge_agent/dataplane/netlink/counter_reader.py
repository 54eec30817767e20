"""Reads the kernel's counters over a netlink socket of its own. Blocking; for use by one thread."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from errno import ENODEV
from pathlib import Path
from socket import AF_UNSPEC
from struct import Struct

from ces_edge_agent.dataplane.meters import ClassCounters, LinkCounters
from ces_edge_agent.dataplane.netlink.counter_messages import (
    ALIGNMENT,
    ATTRIBUTE,
    IFNAME,
    LINK,
    MESSAGE,
    TRAFFIC,
    MalformedMessage,
    Message,
    class_counters,
    device_index,
    link_counters,
    messages,
    root_drops,
)
from ces_edge_agent.dataplane.netlink.namespace import in_namespace
from ces_edge_agent.ports import DataPlaneError

ERROR, DONE = 2, 3  # types of messages, netlink(7)
REQUEST, ACKNOWLEDGE, DUMP = 1, 4, 0x300  # flags of messages
GET_LINK, GET_QDISC, GET_CLASS = 18, 38, 42  # RTM_...
EXT_MASK, SKIP_STATS = 29, 8  # IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS
READ_SIZE = 1 << 16  # the kernel's datagrams are not larger
PATIENCE_S = 5.0  # normally the kernel answers at once
NUMBER = Struct("=i")


class CounterReader:
    """Reads the counters of a namespace; the calling thread need not be in it. Its socket, opened on first use, keeps
    the namespace alive."""

    def __init__(self, namespace: Path) -> None:
        self._namespace = namespace
        self._socket: socket.socket | None = None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def classes(self, device: str) -> dict[int, ClassCounters]:
        """Class minor -> counters; empty if there is no such device. Raises DataPlaneError."""
        with self._read_errors(f"counters of {device}"):
            found: dict[int, ClassCounters] = {}
            for shown in self._device(device, SKIP_STATS):
                asked = TRAFFIC.pack(AF_UNSPEC, device_index(shown), 0, 0, 0)
                answers = [class_counters(message) for message in self._ask(GET_CLASS, DUMP, asked)]
                found.update(answer for answer in answers if answer is not None)
            return found

    def links(self, devices: Collection[str]) -> dict[str, LinkCounters]:
        """Device -> counters, without devices that do not exist. Raises DataPlaneError."""
        with self._read_errors("counters"):
            everything = self._ask(GET_QDISC, DUMP, TRAFFIC.pack(AF_UNSPEC, 0, 0, 0, 0))
            dropped = dict(found for message in everything if (found := root_drops(message)) is not None)
            counted = {}
            for device in devices:
                for shown in self._device(device):
                    index, counters = link_counters(shown)
                    counted[device] = replace(counters, drops=counters.drops + dropped.get(index, 0))
            return counted

    @contextmanager
    def _read_errors(self, what: str) -> Iterator[None]:
        """After a failure the socket may still hold stale answers, so the next read opens another one."""
        try:
            yield
        except (OSError, MalformedMessage) as error:
            self.close()
            raise DataPlaneError(f"{what} cannot be read: {error}") from error

    def _device(self, name: str, mask: int = 0) -> list[Message]:
        """The description of a device: one message, or none if it does not exist."""
        asked = LINK.pack(AF_UNSPEC, 0, 0, 0, 0) + _attribute(IFNAME, name.encode() + b"\0")
        try:
            return list(self._ask(GET_LINK, ACKNOWLEDGE, asked + _attribute(EXT_MASK, NUMBER.pack(mask))))
        except OSError as error:
            if error.errno == ENODEV:
                return []
            raise

    def _ask(self, kind: int, flags: int, content: bytes) -> Iterator[Message]:
        """The answers to one request; the caller must read all of them. Raises OSError and MalformedMessage."""
        if self._socket is None:
            self._socket = in_namespace(self._namespace, _netlink_socket)
        self._socket.send(MESSAGE.pack(MESSAGE.size + len(content), kind, REQUEST | flags, 0, 0) + content)
        while True:
            for message in messages(self._socket.recv(READ_SIZE)):
                if message.kind in (ERROR, DONE):
                    _check(message)
                    return
                yield message


def _netlink_socket() -> socket.socket:
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    made.settimeout(PATIENCE_S)
    return made


def _check(message: Message) -> None:
    """Raises OSError unless the message is a mere acknowledgement, and MalformedMessage."""
    if message.end - message.start < NUMBER.size:
        raise MalformedMessage("an error without its number")
    (code,) = NUMBER.unpack_from(message.data, message.start)
    if code:
        raise OSError(-code, os.strerror(-code))


def _attribute(kind: int, content: bytes) -> bytes:
    padding = -len(content) % ALIGNMENT
    return ATTRIBUTE.pack(ATTRIBUTE.size + len(content), kind) + content + bytes(padding)
