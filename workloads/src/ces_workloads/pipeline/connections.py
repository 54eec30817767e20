"""Connections of a pipeline: one to each next task, kept and made again; and those that come in."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ces_workloads.peers import Peer
from ces_workloads.pipeline.frames import Frame, Torn, receive, send

RETRY_S = 0.2
GONE_MS = 3000  # after which a peer that acknowledges nothing counts as gone
HOSTS = Path("/etc/hosts")
MOST_QUEUED = 1000
"""Frames for one task: what is more is dropped, and lost to its sender."""


class Outgoing:
    """Sends in the background, so that nobody who works waits for a slow link."""

    def __init__(self, peers: Mapping[str, Peer]) -> None:
        self._peers = peers
        self._queues: dict[str, queue.Queue[Frame]] = {}
        self._lock = threading.Lock()
        self.dropped = 0

    def put(self, task: str, frame: Frame) -> None:
        with self._lock:
            if task not in self._queues:
                self._queues[task] = queue.Queue(MOST_QUEUED)
                threading.Thread(target=self._serve, args=(self._peers[task], self._queues[task]), daemon=True).start()
        try:
            self._queues[task].put_nowait(frame)
        except queue.Full:
            self.dropped += 1

    def flush(self, seconds: float) -> None:
        """Wait until all is handed to the kernel, so long at most."""
        until = time.monotonic() + seconds
        while any(each.unfinished_tasks for each in self._queues.values()) and time.monotonic() < until:
            time.sleep(0.01)

    def _serve(self, peer: Peer, frames: queue.Queue[Frame]) -> None:
        connection: socket.socket | None = None
        while True:
            frame = frames.get()
            connection = connection or _connected(peer)
            try:
                send(connection, frame)
            except OSError:  # its task starts again: this frame is lost, the next may not be
                connection.close()
                connection = None
            frames.task_done()


def _connected(peer: Peer) -> socket.socket:
    """A connection, once somebody listens there."""
    while True:
        with contextlib.suppress(OSError):
            made = socket.create_connection((address_of(peer), peer.port), timeout=5.0)
            made.settimeout(None)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_MS)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made
        time.sleep(RETRY_S)


def address_of(peer: Peer, hosts: Path = HOSTS) -> str:
    """Where a peer is now: its name leads there, also once it has moved to another node. Where names of tasks lead
    nowhere, as it was at the start."""
    with contextlib.suppress(OSError):
        for line in hosts.read_text().splitlines():
            words = line.split()
            if peer.task in words[1:]:
                return words[0]
    return peer.address


def listen(address: str, port: int, heard: Callable[[Frame], None]) -> socket.socket:
    """Take connections in the background; ``heard`` is called by each connection's own thread. Raises OSError."""
    server = socket.create_server((address, port), backlog=64)
    threading.Thread(target=_accept, args=(server, heard), daemon=True).start()
    return server


def _accept(server: socket.socket, heard: Callable[[Frame], None]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_read, args=(connection, heard), daemon=True).start()


def _read(connection: socket.socket, heard: Callable[[Frame], None]) -> None:
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            try:
                frame = receive(connection)
            except (Torn, OSError):
                return
            heard(frame)
