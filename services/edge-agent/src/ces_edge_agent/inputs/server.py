"""Serves datasets, and checkpoints to other nodes, over HTTP, with one thread for each connection, so that a slow disk
blocks neither the agent nor other readers; the number of connections is bounded. Files are sent by sendfile(2).

Connections from other addresses are closed before anything is read.
"""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol

import structlog

from ces_common.messages.desired import CheckpointReader
from ces_common.names import CHECKPOINTS_PATH
from ces_edge_agent.checkpoints.signed import NODE, SIGNATURE, may_fetch
from ces_edge_agent.inputs.requests import BadRequest, OutOfRange, may_read, parse_range, parse_target
from ces_edge_agent.inputs.store import File, NotNow, Store, Unreadable

log = structlog.get_logger()
MAX_EACH = 4  # connections of one reader
MAX_TOTAL = 64  # connections in all; a reader's first is always accepted
SILENCE_S = 300.0  # before an idle connection is closed: long enough for a worker that is paused for a while
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
SO_MAX_PACING_RATE = 47  # socket(7); not in Python's socket module
FASTEST = 2**31  # bytes/s; faster connections are not paced
UNPACED = -1


@dataclass(frozen=True)
class Grant:
    """What readers at an address may read (empty: all datasets; None: none), at which rate in bit/s (None: unlimited),
    and how many readers share the address. ``nodes``: those that may fetch checkpoints from there."""

    datasets: frozenset[str] | None = frozenset()
    rate: int | None = None
    readers: int = 1
    nodes: tuple[CheckpointReader, ...] = ()


class CheckpointStore(Protocol):
    """The checkpoints that this node serves."""

    def serve(self, job: str, digest: str, reader: str) -> AbstractContextManager[File]:
        """One of a job's, open; an empty ``digest`` stands for the newest. Blocking. Raises Unreadable."""


class InputServer:
    """Thread-safe. Serves from ``listen`` until ``close``. ``store``: None where the node offers no datasets;
    ``node``: its own name, which requests for ``checkpoints`` are signed for."""

    def __init__(self, store: Store | None, checkpoints: CheckpointStore | None = None, node: str = "") -> None:
        self.store, self.checkpoints, self.node = store, checkpoints, node
        self._lock = threading.Lock()
        self._grants: Mapping[str, Grant] = {}
        self._connections: dict[socket.socket, str] = {}  # -> the reader's address
        self._listener: socket.socket | None = None

    def listen(self, listener: socket.socket) -> None:
        """Serve at this socket from now on instead of the one before. Raises RuntimeError if no thread can be started;
        then the socket is closed and nothing is served."""
        self.close()
        with self._lock:
            self._listener = listener
        try:
            threading.Thread(target=self._accept, args=(listener,), name="ces-inputs", daemon=True).start()
        except RuntimeError:
            self.close()
            raise

    def admit(self, grants: Mapping[str, Grant]) -> None:
        """Admit readers at these addresses and no others, whose connections end at once."""
        with self._lock:
            self._grants = dict(grants)
            current = list(self._connections.items())
            for connection, address in current:
                if address in grants:
                    _pace(connection, grants[address].rate)
                else:
                    _shut_down(connection)

    def grant(self, address: str) -> Grant | None:
        with self._lock:
            return self._grants.get(address)

    def close(self) -> None:
        """Close the listener and all connections."""
        with self._lock:
            listener, self._listener = self._listener, None
            for connection in self._connections:
                _shut_down(connection)
        if listener is not None:
            _shut_down(listener)
            listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, (address, *_) = listener.accept()
            except OSError as error:
                if self._listener is not listener:
                    return
                log.warning("a reader could not be accepted", error=str(error))
                threading.Event().wait(0.1)  # such as being out of descriptors
                continue
            self._accept_one(listener, connection, address)

    def _accept_one(self, listener: socket.socket, connection: socket.socket, address: str) -> None:
        with self._lock:
            # A connection accepted just before a close was not closed by it.
            grant = self._grants.get(address) if self._listener is listener else None
            room = grant is not None and self._room(address, grant)
            if grant is not None and room:
                self._connections[connection] = address
                _pace(connection, grant.rate)
        if room and self._start(connection, address):
            return
        if grant is not None:
            with suppress(OSError):
                connection.send(BUSY)
        _shut_down(connection)
        connection.close()

    def _room(self, address: str, grant: Grant) -> bool:
        """Whether an address may have one more connection. To be called with the lock held."""
        open_now = Counter(self._connections.values())[address]
        return open_now < grant.readers or (open_now < MAX_EACH * grant.readers and len(self._connections) < MAX_TOTAL)

    def _start(self, connection: socket.socket, address: str) -> bool:
        """Start a thread for the connection; False if none could be started."""
        try:
            threading.Thread(target=self._serve, args=(connection, address), name="ces-input", daemon=True).start()
        except RuntimeError as error:
            log.warning("a reader could not be accepted", reader=address, error=str(error))
            with self._lock:
                self._connections.pop(connection, None)
            return False
        return True

    def _serve(self, connection: socket.socket, address: str) -> None:
        try:
            _Handler(connection, address, self)
        except OSError as error:  # the reader has gone, or has not read for too long
            log.info("a reader was lost", reader=address, error=str(error))
        except Exception:  # a bug of ours: it costs only this connection
            log.exception("a request for data failed", reader=address)
        finally:
            with self._lock:
                self._connections.pop(connection, None)
                _shut_down(connection)
                connection.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "ces", ""
    timeout = SILENCE_S

    def __init__(self, connection: socket.socket, address: str, server: InputServer) -> None:
        self.inputs, self.reader = server, address
        super().__init__(connection, (address, 0), server)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:
        log.debug("data", reader=self.reader, what=format % args)

    def _answer(self, with_body: bool) -> None:
        grant = self.inputs.grant(self.reader)
        if grant is None:
            self.close_connection = True
            return
        try:
            names = parse_target(self.path)
            if names[:1] == [CHECKPOINTS_PATH]:
                self._send_checkpoint(grant, names[1:], with_body)
                return
            store = self.inputs.store
            if store is None or grant.datasets is None:
                self._say(HTTPStatus.FORBIDDEN, {"error": "no datasets are offered here"}, with_body)
                return
            if not names:
                there = [name for name in store.names() if may_read(name, grant.datasets)]
                self._say(HTTPStatus.OK, {"datasets": there}, with_body)
                return
            dataset, *path = names
            if not may_read(dataset, grant.datasets):
                allowed = ", ".join(sorted(grant.datasets))
                why = f"{dataset!r} is not among the datasets of this input, which are: {allowed}"
                self._say(HTTPStatus.FORBIDDEN, {"error": f"{why}; name it in the job file's flows.inputs"}, with_body)
                return
            with store.open(dataset, path) as found:
                if isinstance(found, File):
                    self._send_file(found, with_body)
                    return
                listing = {
                    "files": [{"name": name, "size": size} for name, size in found.files.items()],
                    "folders": found.folders,
                    "complete": found.complete,
                }
            self._say(HTTPStatus.OK, listing, with_body)
        except BadRequest as error:
            self._say(HTTPStatus.BAD_REQUEST, {"error": str(error)}, with_body)
        except NotNow as error:
            self._say(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)}, with_body)
        except Unreadable as error:
            self._say(HTTPStatus.NOT_FOUND, {"error": str(error)}, with_body)

    def _send_checkpoint(self, grant: Grant, names: list[str], with_body: bool) -> None:
        store = self.inputs.checkpoints
        job, digest = [*names, "", ""][:2]
        reader, signature = self.headers.get(NODE, ""), self.headers.get(SIGNATURE, "")
        if store is None or not may_fetch(grant.nodes, reader, signature, self.inputs.node, job, digest):
            self._say(HTTPStatus.FORBIDDEN, {"error": "this node may not fetch checkpoints of that job"}, with_body)
            return
        if not digest and not with_body:  # which would pack it
            self._say(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "the newest checkpoint is had by GET"}, with_body)
            return
        with store.serve(job, digest, reader) as found:
            self._send_file(found, with_body)

    def _send_file(self, file: File, with_body: bool) -> None:
        mark = f'"{file.mark}"'
        asked = self.headers.get("Range") if self.headers.get("If-Range", mark) == mark else None
        try:
            span = parse_range(asked, file.size)
        except OutOfRange:
            self._say(
                HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
                {"error": f"it has {file.size} bytes"},
                with_body,
                {"Content-Range": f"bytes */{file.size}"},
            )
            return
        self.send_response(HTTPStatus.PARTIAL_CONTENT if span.partial else HTTPStatus.OK)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(span.count))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", mark)
        if span.partial:
            self.send_header("Content-Range", f"bytes {span.start}-{span.start + span.count - 1}/{file.size}")
        self.end_headers()
        if with_body and span.count:
            sent = self.connection.sendfile(file.content, span.start, span.count)
            if sent < span.count:  # the file was truncated meanwhile: the reader sees that bytes are missing
                self.close_connection = True

    def _say(
        self, status: HTTPStatus, content: object, with_body: bool, headers: Mapping[str, str] | None = None
    ) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)


def _pace(connection: socket.socket, rate: int | None) -> None:
    """Pace the socket a quarter above the flow's rate, so that the class decides. Unpaced, TCP on a fast device sends
    bursts that do not fit into a slow class's queue. The kernel takes bytes/s."""
    bytes_s = FASTEST if rate is None else max(rate // 8 * 5 // 4, 1)
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, bytes_s if bytes_s < FASTEST else UNPACED)


def _shut_down(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
