"""ICMP echo requests over given devices of a namespace, through a ping socket, icmp(7), which needs no capability. The
neighbour's kernel answers, whether its agent runs or not."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ces_edge_agent.dataplane.netlink.namespace import in_namespace
from ces_edge_agent.ports import DataPlaneError

IP_PKTINFO = 8  # ip(7); not in Python's socket module before 3.12
PKTINFO = struct.Struct("@i4s4s")  # struct in_pktinfo: device, local address, address in the header
HEADER = struct.Struct("!BBHHH")  # type, code, checksum, identifier, sequence; the kernel sets checksum and identifier
PAYLOAD = struct.Struct("!8sdd")  # this pinger's mark, and when it was sent: caller's clock, wall clock
SO_TIMESTAMPNS = 35  # socket(7): arrival time by the kernel, as a busy agent reads late
TIMESTAMP = struct.Struct("@ll")
CONTROLS = socket.CMSG_SPACE(PKTINFO.size) + socket.CMSG_SPACE(TIMESTAMP.size)
ECHO_REPLY, ECHO_REQUEST = 0, 8


@dataclass(frozen=True, slots=True)
class Answer:
    index: int  # of the device on which it arrived
    address: str
    sent: float  # when the request was sent, by the caller's clock
    round_trip_s: float


class Pinger:
    """For use by one thread, which need not be in the namespace."""

    def __init__(self, path: Path) -> None:
        """Blocking. Raises DataPlaneError."""
        self._mark = os.urandom(8)
        try:
            self._socket = in_namespace(path, _ping_socket)
        except OSError as error:
            raise DataPlaneError(f"neighbours cannot be probed from {path}: {error.strerror}") from error

    def close(self) -> None:
        self._socket.close()

    def send(self, index: int, source: str, target: str, now: float) -> None:
        """Send a request. An error counts as a request that nobody answers."""
        packet = HEADER.pack(ECHO_REQUEST, 0, 0, 0, 0) + PAYLOAD.pack(self._mark, now, time.time())
        info = PKTINFO.pack(index, socket.inet_aton(source), bytes(4))
        with suppress(OSError):
            self._socket.sendmsg([packet], [(socket.IPPROTO_IP, IP_PKTINFO, info)], 0, (target, 0))

    def answers(self) -> Iterator[Answer]:
        """The answers that have arrived since the last call."""
        while True:
            try:
                data, controls, _, sender = self._socket.recvmsg(256, CONTROLS)
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP error about an earlier packet
            if len(data) < HEADER.size + PAYLOAD.size or data[0] != ECHO_REPLY:
                continue
            mark, sent, left = PAYLOAD.unpack_from(data, HEADER.size)
            said = {(level, kind): content for level, kind, content in controls}
            info = said.get((socket.IPPROTO_IP, IP_PKTINFO))
            stamp = said.get((socket.SOL_SOCKET, SO_TIMESTAMPNS))
            if mark == self._mark and info is not None and stamp is not None:
                seconds, nanoseconds = TIMESTAMP.unpack(stamp)
                took = max(seconds - left + nanoseconds * 1e-9, 0.0)
                yield Answer(PKTINFO.unpack(info)[0], sender[0], sent, took)


def _ping_socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, socket.IPPROTO_ICMP)
    made.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    return made
