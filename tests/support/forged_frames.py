"""Frames that a stranger sends into a tunnel, and a worker who says what reached it."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path

from ces_edge_agent.dataplane.netlink.namespace import in_namespace

VXLAN_PORT = 4789
PORT = 5399


def frame(source_mac: str, target_mac: str, source: str, target: str, data: bytes) -> bytes:
    """An Ethernet frame with a UDP datagram."""
    udp = struct.pack("!HHHH", PORT, PORT, 8 + len(data), 0) + data
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, socket.IPPROTO_UDP, 0)
    ip = head + IPv4Address(source).packed + IPv4Address(target).packed
    total = sum(struct.unpack("!10H", ip))
    total = (total >> 16) + (total & 0xFFFF)
    checksum = ~(total + (total >> 16)) & 0xFFFF
    macs = bytes.fromhex((target_mac + source_mac).replace(":", ""))
    return macs + b"\x08\x00" + ip[:10] + struct.pack("!H", checksum) + ip[12:] + udp


def send_vxlan(namespace: Path, host: str, vni: int, inner: bytes) -> None:
    """Send a frame to a host's VXLAN port as a tunnel would, from an address of the namespace."""
    with in_namespace(namespace, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender:
        sender.sendto(struct.pack("!II", 0x08000000, vni << 8) + inner, (host, VXLAN_PORT))


class Ear:
    def __init__(self, opened: socket.socket) -> None:
        self._opened = opened

    def heard(self, last: bytes) -> list[bytes]:
        """All that came until ``last`` did. Raises TimeoutError where it does not."""
        found = [self._opened.recv(2048)]
        while found[-1] != last:
            found.append(self._opened.recv(2048))
        return found


@contextmanager
def ear(namespace: Path, address: str, patience_s: float = 10.0) -> Iterator[Ear]:
    """Hears datagrams to an address."""

    def make() -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.bind((address, PORT))
        opened.settimeout(patience_s)
        return opened

    with in_namespace(namespace, make) as opened:
        yield Ear(opened)


def say(namespace: Path, address: str, data: bytes) -> None:
    """Send a datagram to where an ear hears."""
    with in_namespace(namespace, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender:
        sender.sendto(data, (address, PORT))
