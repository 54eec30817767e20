"""How workers find each other: one TCP connection for each flow, opened by the task that sends on it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable

from ces_workloads.connections import Connections
from ces_workloads.overlay import Neighbours
from ces_workloads.peers import Membership, Peer

_ACCEPTED = b"+"
_HELLO_LIMIT = 1024
_HELLO_SECONDS = 5.0
_ATTEMPT_SECONDS = 3.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_LEAST_BACKLOG = 16


class RendezvousFailed(Exception):
    """The neighbours did not find each other in time, or this worker's own address cannot be used."""


def connect(members: Membership, neighbours: Neighbours, timeout: float) -> Connections:
    """Listen on the worker's own address, connect to all that it sends to and wait for all that it hears from.

    Peers may start later: connecting is tried again until ``timeout`` seconds have passed, then
    :class:`RendezvousFailed` says who is missing.
    """
    deadline = time.monotonic() + timeout
    pauses = _Pauses()
    outgoing: dict[int, socket.socket] = {}
    incoming: dict[int, socket.socket] = {}
    try:
        with _listener(members, len(neighbours.hears)) as listener:
            missing = list(neighbours.sends)
            while missing:
                # All ranks first connect, then accept: the kernel completes connections before anyone accepts.
                for peer in missing:
                    outgoing[peer.rank] = _connect(members, peer, deadline, pauses)
                _accept_all(listener, members, neighbours, incoming, deadline)
                # Some may answer and go away, as a worker of an earlier attempt that is just ending does.
                missing = [peer for peer in missing if not _is_accepted(outgoing[peer.rank], peer, deadline)]
                for peer in missing:
                    outgoing.pop(peer.rank).close()
                if missing:
                    pauses.wait(deadline)
    except BaseException:
        for connection in (*outgoing.values(), *incoming.values()):
            connection.close()
        raise
    for connection in (*outgoing.values(), *incoming.values()):
        _tune(connection)
    return Connections(members, outgoing, incoming)


def _listener(members: Membership, expected: int) -> socket.socket:
    try:
        return socket.create_server((members.address, members.port), backlog=max(_LEAST_BACKLOG, expected))
    except OSError as error:
        raise RendezvousFailed(f"cannot listen on {members.address}:{members.port}: {error}") from error


def _connect(members: Membership, peer: Peer, deadline: float, pauses: _Pauses) -> socket.socket:
    while True:
        try:
            connection = socket.create_connection(
                (peer.address, peer.port),
                timeout=_within(deadline, _ATTEMPT_SECONDS, lambda: _missing("connect to", peer)),
                # Flows are routed and shaped by both addresses: the packets must carry the worker's own.
                source_address=(members.address, 0),
            )
        except OSError as error:
            if time.monotonic() >= deadline:
                raise RendezvousFailed(f"{_missing('connect to', peer)}: {error}") from error
            pauses.wait(deadline)
            continue
        try:
            connection.sendall(_hello(members, members.rank))
        except OSError:
            connection.close()
            pauses.wait(deadline)
            continue
        return connection


def _accept_all(
    listener: socket.socket,
    members: Membership,
    neighbours: Neighbours,
    incoming: dict[int, socket.socket],
    deadline: float,
) -> None:
    """Fill ``incoming`` with a connection from each peer that this worker hears from."""
    expected = {_hello(members, peer.rank): peer for peer in neighbours.hears if peer.rank not in incoming}
    while expected:
        absent = next(iter(expected.values()))
        listener.settimeout(_within(deadline, float("inf"), lambda: _missing("hear from", absent)))  # noqa: B023
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            raise RendezvousFailed(_missing("hear from", absent)) from None
        try:
            patience = _within(deadline, _HELLO_SECONDS, lambda: _missing("hear from", absent))  # noqa: B023
            peer = expected.get(hello := read_line(connection, patience))
            if peer is not None:
                connection.sendall(_ACCEPTED)
                incoming[peer.rank] = connection
                del expected[hello]
                continue
        except OSError:
            pass  # a stranger that hangs or leaves is turned away like one that says the wrong thing
        connection.close()


def _is_accepted(connection: socket.socket, peer: Peer, deadline: float) -> bool:
    connection.settimeout(_within(deadline, float("inf"), lambda: _missing("be accepted by", peer)))
    try:
        return connection.recv(1) == _ACCEPTED
    except TimeoutError:
        raise RendezvousFailed(_missing("be accepted by", peer)) from None
    except OSError:
        return False


def _hello(members: Membership, rank: int) -> bytes:
    words = {"job": members.job, "rank": rank, "world_size": members.world_size}
    return json.dumps(words, sort_keys=True).encode() + b"\n"


def read_line(connection: socket.socket, seconds: float) -> bytes:
    """A line, or what there is of it at its end; raises TimeoutError after ``seconds`` in all."""
    end = time.monotonic() + seconds
    line = b""
    while not line.endswith(b"\n") and len(line) < _HELLO_LIMIT:
        connection.settimeout(_left(end))
        byte = connection.recv(1)
        if not byte:
            break
        line += byte
    return line


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("it took too long")
    return left


def _tune(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A neighbour whose machine is gone is noticed within a minute; one that is merely paused still answers.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _missing(verb: str, peer: Peer) -> str:
    return f"could not {verb} {peer} in time"


def _within(deadline: float, longest: float, failure: Callable[[], str]) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise RendezvousFailed(failure())
    return min(remaining, longest)


class _Pauses:
    """Growing pauses between attempts."""

    def __init__(self) -> None:
        self._next = _FIRST_PAUSE

    def wait(self, deadline: float) -> None:
        time.sleep(max(0.0, min(self._next, deadline - time.monotonic())))
        self._next = min(self._next * 2, _LONGEST_PAUSE)
