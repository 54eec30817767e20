"""A worker's connections with its neighbours: sending to several and receiving from several at once."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from ces_workloads.peers import Membership, Peer

# How long a neighbour may neither send nor take a byte that is waited for. Counted in slices of the worker's own
# running time, so that a job that was paused as a whole goes on afterwards.
PATIENCE_SECONDS = 300
# How long a worker that is done stays for neighbours of which it hears nothing: they may be rounds behind, and not be
# drawn with it. Those that died are noticed by their closed connection, dead machines by its keepalive.
LEAVING_SECONDS = 24 * 3600
_SLICE_SECONDS = 1.0
_NOTICE_BYTES = 4
_NOTICE_SECONDS = 2.0
_DISCARD_BYTES = 1 << 16


class PeerLost(Exception):
    """The connection with a neighbour broke, or it was silent for too long: the gang cannot go on."""

    def __init__(self, peer: Peer, why: object) -> None:
        super().__init__(f"lost {peer}: {why}")
        self.peer = peer


class Exchange(Protocol):
    """What an algorithm needs of its connections."""

    def exchange(self, outgoing: Mapping[int, memoryview], incoming: Mapping[int, memoryview]) -> None:
        """Send each rank's bytes to it while the buffers of others fill, all at the same time."""


class Connections:
    """One connection to each rank that this worker sends to and one from each that it hears from.

    Data goes forward only. The way back carries one thing: who was lost. A gang falls apart one neighbour at a time,
    and without that notice most workers would blame a neighbour that only left because another had gone.

    ``bytes_sent`` and ``bytes_received`` count payload, ``seconds`` the time in :meth:`exchange`, waiting included.
    """

    def __init__(
        self,
        members: Membership,
        outgoing: Mapping[int, socket.socket],
        incoming: Mapping[int, socket.socket],
        patience: float = PATIENCE_SECONDS,
        leaving: float = LEAVING_SECONDS,
    ) -> None:
        self._members = members
        self._outgoing, self._incoming = dict(outgoing), dict(incoming)
        self._patience, self._leaving = patience, leaving
        self._selector = selectors.DefaultSelector()
        self.bytes_sent = self.bytes_received = 0
        self.seconds = 0.0
        for connection in (*self._outgoing.values(), *self._incoming.values()):
            connection.setblocking(False)
        for rank, connection in self._outgoing.items():
            # A rank that is sent to becomes readable only when it leaves: with a notice, or silently when killed.
            self._selector.register(connection, selectors.EVENT_READ, rank)

    def exchange(self, outgoing: Mapping[int, memoryview], incoming: Mapping[int, memoryview]) -> None:
        """Send all of ``outgoing`` and fill all of ``incoming``, by rank. Raises :class:`PeerLost`."""
        started = time.perf_counter()
        to_send = {rank: content for rank, content in outgoing.items() if content}
        to_fill = {rank: buffer for rank, buffer in incoming.items() if buffer}
        for rank in to_send:
            self._selector.modify(self._outgoing[rank], selectors.EVENT_READ | selectors.EVENT_WRITE, rank)
        for rank in to_fill:
            self._selector.register(self._incoming[rank], selectors.EVENT_READ, rank)
        silent = 0.0
        while to_send or to_fill:
            events = self._selector.select(_SLICE_SECONDS)
            silent = 0.0 if events else silent + _SLICE_SECONDS
            verb, awaited = ("sent", next(iter(to_fill))) if to_fill else ("took", next(iter(to_send)))
            if silent >= self._patience:
                raise self._given_up(awaited, f"it {verb} nothing for {self._patience:g} s")
            for key, mask in events:
                if key.fileobj is self._incoming.get(key.data):
                    self._receive(key.data, to_fill)
                elif mask & selectors.EVENT_READ:
                    raise self._receiver_left(key.data, awaited)
                else:
                    self._send(key.data, to_send)
        self.seconds += time.perf_counter() - started

    def _send(self, rank: int, to_send: dict[int, memoryview]) -> None:
        try:
            sent = self._outgoing[rank].send(to_send[rank])
        except OSError as error:
            raise self._passed_on(self._notice(rank) or self._lost(rank, error)) from error
        self.bytes_sent += sent
        to_send[rank] = to_send[rank][sent:]
        if not to_send[rank]:
            del to_send[rank]
            self._selector.modify(self._outgoing[rank], selectors.EVENT_READ, rank)

    def _receive(self, rank: int, to_fill: dict[int, memoryview]) -> None:
        try:
            received = self._incoming[rank].recv_into(to_fill[rank])
        except OSError as error:
            raise self._sender_lost(rank, error) from error
        if received == 0:
            raise self._sender_lost(rank, "it closed the connection")
        self.bytes_received += received
        to_fill[rank] = to_fill[rank][received:]
        if not to_fill[rank]:
            del to_fill[rank]
            self._selector.unregister(self._incoming[rank])

    def _receiver_left(self, rank: int, awaited: int) -> PeerLost:
        """A rank that is sent to can be read from: it left, or gave somebody up."""
        lost = self._notice(rank) or self._lost(rank, "it closed the connection")
        if lost.peer.rank == self._members.rank:  # though this worker only waits for another one itself
            return self._given_up(awaited, f"it was waited for when rank {rank} gave this worker up")
        return self._passed_on(lost)

    def _sender_lost(self, rank: int, why: object) -> PeerLost:
        # It left without a word, for words travel back only. If another rank is the cause, word of it is on its way.
        return self._passed_on(self._heard() or self._lost(rank, why))

    def _given_up(self, rank: int, why: str) -> PeerLost:
        """A rank is silent. If it lives and waits for another one, it says so when it hears that it is given up."""
        lost = self._passed_on(self._lost(rank, why))
        return self._heard() or lost

    def _lost(self, rank: int, why: object) -> PeerLost:
        return PeerLost(self._members.peers[rank], why)

    def _heard(self) -> PeerLost | None:
        """The next notice that names another worker, if one comes soon."""
        with selectors.DefaultSelector() as coming:
            for rank, connection in self._outgoing.items():
                coming.register(connection, selectors.EVENT_READ, rank)
            events = coming.select(_NOTICE_SECONDS) if self._outgoing else []
        notices = [notice for notice in (self._notice(key.data) for key, _ in events) if notice]
        return next((notice for notice in notices if notice.peer.rank != self._members.rank), None)

    def _notice(self, rank: int) -> PeerLost | None:
        """What a rank that this worker sends to said before it left, if anything."""
        notice = b""
        with suppress(OSError):
            notice = self._outgoing[rank].recv(_NOTICE_BYTES)
        cause = int.from_bytes(notice, "big")
        if len(notice) < _NOTICE_BYTES or cause >= self._members.world_size:
            return None
        return self._lost(cause, f"rank {rank} left because of it")

    def _passed_on(self, lost: PeerLost) -> PeerLost:
        for connection in self._incoming.values():
            with suppress(OSError):
                connection.send(lost.peer.rank.to_bytes(_NOTICE_BYTES, "big"))
        return lost

    def finish(self) -> None:
        """Leave in order: only when those that this worker hears from are done too may its connections close.

        A neighbour that still trains may send nothing for long; only after ``leaving`` seconds is it given up.
        """
        for connection in self._outgoing.values():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        with selectors.DefaultSelector() as leaving:
            for connection in self._incoming.values():
                leaving.register(connection, selectors.EVENT_READ)
            silent = 0.0
            while leaving.get_map() and silent < self._leaving:
                events = leaving.select(_SLICE_SECONDS)
                silent = 0.0 if events else silent + _SLICE_SECONDS
                for key, _ in events:
                    if not _discarded(key.fileobj):
                        leaving.unregister(key.fileobj)
        self.close()

    def close(self) -> None:
        """Drop all connections at once; the neighbours see this worker as lost."""
        self._selector.close()
        for connection in (*self._outgoing.values(), *self._incoming.values()):
            connection.close()


def _discarded(connection: object) -> bool:
    """Whether something came from the connection, which nobody needs any more; it ended otherwise."""
    assert isinstance(connection, socket.socket)
    with suppress(OSError):
        return bool(connection.recv(_DISCARD_BYTES))
    return False
