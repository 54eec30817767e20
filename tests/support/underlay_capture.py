"""What passes over the network between hosts, as a stranger on it sees it."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ces_edge_agent.dataplane.netlink.namespace import in_namespace

ETH_P_ALL = 0x0003
UDP = 17


class Capture:
    def __init__(self, opened: socket.socket) -> None:
        self._opened = opened

    def frames(self) -> list[bytes]:
        """All that has passed so far, since the last call."""
        found = []
        try:
            while True:
                found.append(self._opened.recv(65536))
        except BlockingIOError:
            return found


@contextmanager
def capture(namespace: Path, device: str) -> Iterator[Capture]:
    def make() -> socket.socket:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(ETH_P_ALL))
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        opened.bind((device, 0))
        return opened

    with in_namespace(namespace, make) as opened:
        yield Capture(opened)


def udp_ports(frames: list[bytes]) -> set[int]:
    """The ports to which the UDP datagrams over IPv4 among these frames go."""
    udp = [frame for frame in frames if frame[12:14] == b"\x08\x00" and frame[23] == UDP]
    return {struct.unpack_from("!H", frame, 14 + 4 * (frame[14] & 0xF) + 2)[0] for frame in udp}
