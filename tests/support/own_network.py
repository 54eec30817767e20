"""A network namespace without a name, and ports of this machine that can be reached from it.

A browser breaks requests off, with ERR_NETWORK_CHANGED, whenever a network device comes or goes: so do those of
emulated hosts, of any test on the machine. In here there is a loopback device only, and it stays. The namespace goes
with the last process or socket in it, however that ends.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer

from ces_edge_agent import linux
from ces_edge_agent.own_thread import in_own_thread

HERE = "127.0.0.1"
CHUNK = 64 * 1024
_THREADS_OWN = "/proc/thread-self/ns/net"


@contextmanager
def own_network() -> Iterator[OwnNetwork | None]:
    """None where only root may make one."""
    try:
        handle = in_own_thread(_made, "own-network")
    except PermissionError:
        yield None
        return
    try:
        yield OwnNetwork(handle)
    finally:
        os.close(handle)


class OwnNetwork:
    def __init__(self, handle: int) -> None:
        """``handle``: an open file of the namespace."""
        self._handle = handle

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread, and what it starts, is in the network."""
        before = os.open(_THREADS_OWN, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._enter()
            yield
        finally:
            linux.set_namespace(f"/proc/self/fd/{before}", linux.CLONE_NEWNET)
            os.close(before)

    @contextmanager
    def way_out(self, port: int) -> Iterator[None]:
        """A port of the network's loopback device leads to the same port of the machine's."""

        def listening() -> ThreadingTCPServer:
            self._enter()
            return _WayOut((HERE, port), _Passage)  # its socket stays where it was made; its threads are outside

        with in_own_thread(listening, "own-network") as server:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            try:
                yield
            finally:
                server.shutdown()

    def _enter(self) -> None:
        linux.set_namespace(f"/proc/self/fd/{self._handle}", linux.CLONE_NEWNET)


def _made() -> int:
    linux.unshare(linux.CLONE_NEWNET)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    return os.open(_THREADS_OWN, os.O_RDONLY | os.O_CLOEXEC)


class _WayOut(ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64


class _Passage(BaseRequestHandler):
    """Passes bytes on, both ways, until either side ends."""

    def handle(self) -> None:
        with suppress(OSError), socket.create_connection(self.server.server_address[:2]) as beyond:
            back = threading.Thread(target=_pass_on, args=(beyond, self.request), daemon=True)
            back.start()
            _pass_on(self.request, beyond)
            back.join()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(CHUNK):
            sink.sendall(data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
