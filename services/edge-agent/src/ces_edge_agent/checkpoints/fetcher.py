"""Fetches one checkpoint over this node's data plane, in a thread that is given up with the fetch."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, Final

from ces_common.messages.desired import CheckpointSource, DesiredNetwork
from ces_common.names import CHECKPOINTS_PATH
from ces_edge_agent.checkpoints import signed
from ces_edge_agent.checkpoints.download import (
    CONNECT_S,
    PACKING_S,
    SILENCE_S,
    NotFetched,
    Silent,
    Wanted,
    fetch,
    place_of,
)
from ces_edge_agent.checkpoints.shelf import Shelf
from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.inputs.background_call import BackgroundCall, NoAnswer
from ces_edge_agent.ports import Network

LOOK_S: Final = 1.0
HEADROOM: Final = 2**20  # bytes of an archive beside what is in it
Wants = Callable[[], bool]


class Fetcher:
    """``seed``: of the key with which the node has joined; ``limit``: bytes of a checkpoint."""

    def __init__(
        self, node: str, seed: str, network: Network, networks: StoredDocument[DesiredNetwork], shelf: Shelf, limit: int
    ) -> None:
        self._node, self._seed, self._network, self._networks = node, seed, network, networks
        self._shelf, self._limit = shelf, limit

    async def fetch(self, job: str, source: CheckpointSource, into: IO[bytes], still: Wants) -> str:
        """Write the archive; returns its digest. ``still``: whether it is wanted any more. Raises NotFetched, OSError,
        DataPlaneError."""
        desired = self._networks.current
        address, port = place_of(source.url)
        own = "" if desired is None or desired.mode != "tc" else desired.router
        known = source.checkpoint
        digest = "" if known is None else known.digest
        path = f"/{CHECKPOINTS_PATH}/{job}" + (f"/{digest}" if digest else "")
        size = None if known is None else known.size
        room = await asyncio.to_thread(self._shelf.room, size or 0)
        wanted = Wanted(min(self._limit + HEADROOM, room), size, digest or None)
        into.seek(0)
        into.truncate()
        connected = await self._network.dial(address, port, own, CONNECT_S)
        headers = signed.headers(self._seed, self._node, source.node, job, digest)
        answered = threading.Event()
        call = partial(fetch, connected, path, headers, into, wanted, still, answered.set)
        return await _watched(call, connected, still, answered, SILENCE_S if digest else PACKING_S + SILENCE_S)


async def _watched(
    call: Callable[[], str], connected: socket.socket, still: Wants, answered: threading.Event, patience_s: float
) -> str:
    """What the call returns in a thread of its own; the connection ends with the wait for it. A node that sends its
    headers byte by byte answers in time as little as one that is silent. Raises what the call raises, and Silent."""
    loop = asyncio.get_running_loop()
    fetching = asyncio.create_task(BackgroundCall(call, "ces-checkpoint").call(math.inf))
    until = loop.time() + patience_s
    try:
        while not (await asyncio.wait({fetching}, timeout=LOOK_S))[0]:
            if not still():
                raise NotFetched("it is wanted no longer")
            if not answered.is_set() and loop.time() > until:
                raise Silent("it does not answer")
        return fetching.result()
    except NoAnswer as error:  # there are too many threads
        raise NotFetched(str(error)) from error
    finally:
        fetching.cancel()
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)
