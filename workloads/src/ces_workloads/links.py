"""A worker's TCP connections in a directed ring: finding the neighbours, sending and receiving at once."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from ces_workloads.peers import Membership, Peer

_ACCEPTED = b"+"
_HELLO_LIMIT = 1024
_HELLO_SECONDS = 5.0
_ATTEMPT_SECONDS = 3.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_NOTICE_BYTES = 4
_NOTICE_SECONDS = 2.0


class RendezvousFailed(Exception):
    """The neighbours did not find each other in time, or this worker's own address cannot be used."""


class PeerLost(Exception):
    """The connection with a neighbour broke: the gang cannot go on."""

    def __init__(self, peer: Peer, why: object) -> None:
        super().__init__(f"lost {peer}: {why}")
        self.peer = peer


class RingLinks:
    """One connection to the next rank and one from the previous; data goes forward only.

    The way back carries one thing: who was lost. A gang falls apart one neighbour at a time, and without that notice
    most workers would blame a neighbour that only left because another had gone.
    """

    def __init__(self, members: Membership, to_next: socket.socket, from_previous: socket.socket) -> None:
        self._members = members
        self._to_next = to_next
        self._from_previous = from_previous
        self.bytes_sent = 0
        for connection in (to_next, from_previous):
            connection.setblocking(False)

    def exchange(self, outgoing: memoryview, incoming: memoryview) -> None:
        """Send all of ``outgoing`` and fill ``incoming``; waits as long as both neighbours live.

        There is no deadline on progress: a job may be paused. Raises :class:`PeerLost`.
        """
        while outgoing or incoming:
            # The next rank becomes readable only when it leaves: with a notice, or silently when it was killed.
            readable, writable, _ = select.select(
                [self._to_next, self._from_previous] if incoming else [self._to_next],
                [self._to_next] if outgoing else [],
                [],
            )
            if self._to_next in readable:
                raise self._next_lost("it closed the connection")
            if writable:
                try:
                    sent = self._to_next.send(outgoing)
                except OSError as error:
                    raise self._next_lost(error) from error
                self.bytes_sent += sent
                outgoing = outgoing[sent:]
            if self._from_previous in readable:
                try:
                    received = self._from_previous.recv_into(incoming)
                except OSError as error:
                    raise self._previous_lost(error) from error
                if received == 0:
                    raise self._previous_lost("it closed the connection")
                incoming = incoming[received:]

    def _next_lost(self, why: object) -> PeerLost:
        return self._passed_on(self._notice() or PeerLost(self._members.next, why))

    def _previous_lost(self, why: object) -> PeerLost:
        # It left without a word, for words travel back only. If another rank is the cause, word of it is on its way.
        coming, _, _ = select.select([self._to_next], [], [], _NOTICE_SECONDS)
        heard = self._notice() if coming else None
        return self._passed_on(heard or PeerLost(self._members.previous, why))

    def _notice(self) -> PeerLost | None:
        """What the next rank said before it left, if anything."""
        notice = b""
        with suppress(OSError):
            notice = self._to_next.recv(_NOTICE_BYTES)
        rank = int.from_bytes(notice, "big")
        if len(notice) < _NOTICE_BYTES or rank >= self._members.world_size:
            return None
        return PeerLost(self._members.peers[rank], f"rank {self._members.next.rank} left because of it")

    def _passed_on(self, lost: PeerLost) -> PeerLost:
        with suppress(OSError):
            self._from_previous.send(lost.peer.rank.to_bytes(_NOTICE_BYTES, "big"))
        return lost

    def finish(self) -> None:
        """Leave the ring in order: only when the previous rank is done too may its connection close."""
        with suppress(OSError):
            self._to_next.shutdown(socket.SHUT_WR)
            self._from_previous.setblocking(True)
            self._from_previous.recv(1)
        self.close()

    def close(self) -> None:
        """Drop both connections at once; the neighbours see this worker as lost."""
        self._to_next.close()
        self._from_previous.close()


def connect_ring(members: Membership, timeout: float) -> RingLinks:
    """Listen on the worker's own address, connect to the next rank and wait for the previous one.

    Peers may start later: connecting is tried again until ``timeout`` seconds have passed, then
    :class:`RendezvousFailed` says who is missing.
    """
    deadline = time.monotonic() + timeout
    try:
        listener = socket.create_server((members.address, members.port), backlog=16)
    except OSError as error:
        raise RendezvousFailed(f"cannot listen on {members.address}:{members.port}: {error}") from error
    from_previous: socket.socket | None = None
    with listener:
        pauses = _Pauses()
        while True:
            # All ranks first connect, then accept: the kernel completes connections before anyone accepts.
            to_next = _connect(members, deadline, pauses)
            if from_previous is None:
                from_previous = _accept(listener, members, deadline)
            if _is_accepted(to_next, members.next, deadline):
                break
            # It answered and went away, as a worker of an earlier attempt that is just ending does.
            to_next.close()
            pauses.wait(deadline)
    for connection in (to_next, from_previous):
        _tune(connection)
    return RingLinks(members, to_next, from_previous)


def _connect(members: Membership, deadline: float, pauses: _Pauses) -> socket.socket:
    peer = members.next
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
            connection.sendall(_hello(members))
        except OSError:
            connection.close()
            pauses.wait(deadline)
            continue
        return connection


def _accept(listener: socket.socket, members: Membership, deadline: float) -> socket.socket:
    peer = members.previous
    expected = _hello(Membership(members.job, peer.rank, "", 0, members.peers, ()))
    while True:
        listener.settimeout(_within(deadline, float("inf"), lambda: _missing("hear from", peer)))
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            raise RendezvousFailed(_missing("hear from", peer)) from None
        try:
            connection.settimeout(_HELLO_SECONDS)
            if _read_line(connection) == expected:
                connection.sendall(_ACCEPTED)
                return connection
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


def _hello(members: Membership) -> bytes:
    words = {"job": members.job, "rank": members.rank, "world_size": members.world_size}
    return json.dumps(words, sort_keys=True).encode() + b"\n"


def _read_line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n") and len(line) < _HELLO_LIMIT:
        byte = connection.recv(1)
        if not byte:
            break
        line += byte
    return line


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
