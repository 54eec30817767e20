"""Traffic between workers, by sockets that this process opened inside their network namespaces."""

from __future__ import annotations

import socket
import struct
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from ces_experiments.network.flood import DATAGRAM_FRAME, FLOOD_PORT
from ces_experiments.network.rates import Sample
from ces_experiments.network.row import Worker
from ces_testbed.enter import enter

STREAM_PORT, KNOCK_PORT = 5301, 5302
CHUNK = 1 << 18
DISCARD = 1 << 22  # bytes that one call may take off a receiving socket, uncopied
HEADERS = 66  # of a frame: Ethernet 14, IPv4 20, TCP with timestamps 32
CONGESTION = b"cubic"  # Linux's own default; BBR, set on some machines, leaves a class idle while it probes
KNOCK_TIMEOUT_S = 5.0
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35  # socket(7)
LATE = 1 << 24  # bytes of a socket's buffer: what comes while this program does not read
STAMP = struct.Struct("@ll")
STAMP_SPACE = socket.CMSG_SPACE(STAMP.size)
# struct tcp_info, linux/tcp.h: tcpi_rcv_mss; tcpi_total_retrans; tcpi_data_segs_in
RECEIVED = struct.Struct("=20xI128xI")
RETRANSMITTED = struct.Struct("=100xI")

Result = TypeVar("Result")


def inside(namespace: str, function: Callable[[], Result]) -> Result:
    """Call it in a thread that has entered the namespace. Raises what it raises, and OSError."""
    results: list[Result] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            enter(namespace)
            results.append(function())
        except Exception as error:  # handed to the caller below
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def listen(worker: Worker, port: int) -> socket.socket:
    return inside(worker.namespace, lambda: socket.create_server((worker.address, port), backlog=64))


def connect(src: Worker, dst: Worker, port: int) -> socket.socket:
    return inside(src.namespace, lambda: socket.create_connection((dst.address, port), KNOCK_TIMEOUT_S))


class Stream:
    """A TCP connection that sends as fast as it can from ``start`` to ``close``."""

    def __init__(self, src: Worker, dst: Worker) -> None:
        with listen(dst, STREAM_PORT) as server:
            self._sender = connect(src, dst, STREAM_PORT)
            self._sender.settimeout(None)
            with suppress(OSError):  # a kernel without it keeps its own
                self._sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONGESTION)
            self._receiver, _ = server.accept()
        self.broken: OSError | None = None
        self._stopping = False
        self._threads = [threading.Thread(target=self._send), threading.Thread(target=self._receive)]

    def start(self) -> None:
        """Send from now on; a stream that sends already goes on."""
        for thread in self._threads:
            if thread.ident is None:
                thread.start()

    def frames(self) -> int:
        """Bytes of Ethernet frames that have arrived, in order or not; a stream that never pauses fills them all."""
        mss, segments = RECEIVED.unpack(self._receiver.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, RECEIVED.size))
        return (HEADERS + int(mss)) * int(segments)

    def retransmitted(self) -> int:
        """Segments sent again."""
        (count,) = RETRANSMITTED.unpack(
            self._sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, RETRANSMITTED.size)
        )
        return int(count)

    def close(self) -> None:
        self._stopping = True
        for end in (self._sender, self._receiver):
            with suppress(OSError):  # the other end was first
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self._sender.close()
        self._receiver.close()

    def _send(self) -> None:
        data = bytes(CHUNK)
        try:
            while not self._stopping:
                self._sender.sendall(data)
        except OSError as error:
            self._note(error)

    def _receive(self) -> None:
        nothing = bytearray(1)
        try:
            while self._receiver.recv_into(nothing, 1) and self._receiver.recv(DISCARD, socket.MSG_TRUNC):
                pass
        except OSError as error:
            self._note(error)

    def _note(self, error: OSError) -> None:
        if not self._stopping:
            self.broken = error


class Datagrams:
    """Counts what a worker gets of a ``flood``: traffic that no congestion control holds back. The kernel says when
    each came: this program reads it late where others have the core, or its own threads."""

    def __init__(self, dst: Worker) -> None:
        def bound() -> socket.socket:
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, LATE)
            receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            receiver.bind((dst.address, FLOOD_PORT))
            receiver.settimeout(0.2)
            return receiver

        self._receiver = inside(dst.namespace, bound)
        self._came: list[float] = []  # on the wall's clock
        self._stopping = False
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    def since(self, moment: float) -> list[Sample]:
        """The bytes of Ethernet frames that had arrived at each arrival from a moment on."""
        ahead = max(time.time() - time.monotonic() for _ in range(5))  # a pause between the two makes it less
        first = bisect_left(self._came, moment + ahead)
        return [(came - ahead, count * DATAGRAM_FRAME) for count, came in enumerate(self._came[first:], first + 1)]

    def close(self) -> None:
        self._stopping = True
        self._thread.join()
        self._receiver.close()

    def _receive(self) -> None:
        nothing = [bytearray(1)]
        while not self._stopping:
            with suppress(TimeoutError):
                _, ((_, _, stamp),), _, _ = self._receiver.recvmsg_into(nothing, STAMP_SPACE)
                seconds, nanoseconds = STAMP.unpack(stamp)
                self._came.append(seconds + nanoseconds * 1e-9)


@contextmanager
def streams(*ends: tuple[Worker, Worker]) -> Iterator[list[Stream]]:
    """Connections between workers, none of them sending yet."""
    with ExitStack() as stack:
        opened = []
        for src, dst in ends:
            opened.append(Stream(src, dst))
            stack.callback(opened[-1].close)
        yield opened


@dataclass
class Knocks:
    """How long new connections took to open, in seconds, and how many did not open in time."""

    took_s: list[float]
    failed: int = 0


@contextmanager
def knocking(src: Worker, dst: Worker, every_s: float = 0.1) -> Iterator[Knocks]:
    """Open a connection from one worker to another again and again."""
    knocks, stop = Knocks([]), threading.Event()
    server = listen(dst, KNOCK_PORT)

    def answer() -> None:
        with suppress(OSError):
            while True:
                server.accept()[0].close()

    def knock() -> None:
        enter(src.namespace)
        while not stop.wait(every_s):
            start = time.monotonic()
            try:
                socket.create_connection((dst.address, KNOCK_PORT), KNOCK_TIMEOUT_S).close()
            except OSError:
                knocks.failed += 1
            else:
                knocks.took_s.append(time.monotonic() - start)

    threads = [threading.Thread(target=answer), threading.Thread(target=knock)]
    for thread in threads:
        thread.start()
    try:
        yield knocks
    finally:
        stop.set()
        threads[1].join()
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        server.close()
        threads[0].join()
