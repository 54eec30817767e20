"""Traffic between network namespaces, made by sockets of this process that were opened inside them."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from ces_edge_agent.dataplane.netlink.namespace import in_namespace
from ces_edge_agent.dataplane.plan.shaping import BURST_S

PORT = 5301
WARM_UP_S = 1.0
WINDOWS = 5
LATE_SHARE = 0.02
TICK_S = 0.005
Result = TypeVar("Result")


def listen(namespace: Path, address: str, port: int = PORT) -> socket.socket:
    def make() -> socket.socket:
        return socket.create_server((address, port), backlog=64)

    return in_namespace(namespace, make)


def connect(namespace: Path, address: str, port: int = PORT, timeout: float = 3.0) -> socket.socket:
    """Raises OSError, after ``timeout`` seconds at the latest."""
    return in_namespace(namespace, lambda: socket.create_connection((address, port), timeout))


def reaches(src: Path, dst: Path, address: str, timeout: float = 1.0) -> bool:
    """Whether a TCP connection from one namespace to an address in the other succeeds."""
    with listen(dst, address, PORT + 1):
        try:
            connect(src, address, PORT + 1, timeout).close()
        except OSError:
            return False
    return True


class Stream:
    """A TCP connection that sends as fast as it can until closed; counts what arrives. ``longest_s``: between two
    pieces of it."""

    def __init__(self, src: Path, dst: Path, address: str, port: int = PORT) -> None:
        with listen(dst, address, port) as server:
            self._sender = connect(src, address, port)
            self._receiver, _ = server.accept()
        self.received = 0
        self.longest_s = 0.0
        self.failed: OSError | None = None
        self._stopping = False
        self._threads = [threading.Thread(target=self._send), threading.Thread(target=self._receive)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._stopping = True
        for end in (self._sender, self._receiver):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the other end was first
        for thread in self._threads:
            thread.join()
        self._sender.close()
        self._receiver.close()

    def _send(self) -> None:
        data = bytes(65536)
        try:
            self._sender.settimeout(None)
            while not self._stopping:
                self._sender.sendall(data)
        except OSError as error:
            self._note(error)

    def _receive(self) -> None:
        try:
            last = time.monotonic()
            while data := self._receiver.recv(65536):
                self.received += len(data)
                before, last = last, time.monotonic()
                self.longest_s = max(self.longest_s, last - before)
        except OSError as error:
            self._note(error)

    def _note(self, error: OSError) -> None:
        if not self._stopping:
            self.failed = error


@contextmanager
def streams(*ends: tuple[Path, Path, str]) -> Iterator[list[Stream]]:
    """One stream for each (source, destination, destination's address)."""
    opened: list[Stream] = []
    try:
        for number, (src, dst, address) in enumerate(ends):
            opened.append(Stream(src, dst, address, PORT + 10 + number))
        yield opened
    finally:
        for stream in opened:
            stream.close()


def measure(measured: list[Stream], seconds: float) -> list[float]:
    """Payload rates in bit/s over a window that starts when the streams have settled.

    A shaper sends by timers of this machine: beyond a short burst, what it could not send because one came late is
    lost. Where this process's timers were late, too, another window is taken; the last one counts whatever came."""
    time.sleep(WARM_UP_S)
    for _ in range(WINDOWS):
        start, before = time.monotonic(), [stream.received for stream in measured]
        late_s = _late_s(start + seconds)
        elapsed, after = time.monotonic() - start, [stream.received for stream in measured]
        if late_s < LATE_SHARE * seconds:
            break
        print(f"timers were late by {late_s:.3f} s in {elapsed:.1f} s: once more")
    return [(late - early) * 8 / elapsed for early, late in zip(before, after, strict=True)]


def _late_s(until: float) -> float:
    """Wait until then, and say by how much timers came later than a shaper makes up for, on the worst core."""
    cores = os.sched_getaffinity(0)
    with ThreadPoolExecutor(len(cores)) as threads:
        return max(threads.map(lambda core: _late_on(core, until), cores))


def _late_on(core: int, until: float) -> float:
    os.sched_setaffinity(threading.get_native_id(), {core})
    late_s, now = 0.0, time.monotonic()
    while now < until:
        time.sleep(min(TICK_S, until - now))
        before, now = now, time.monotonic()
        late_s += max(0.0, now - before - TICK_S - BURST_S)
    return late_s
