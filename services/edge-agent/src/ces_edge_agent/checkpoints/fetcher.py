"""Fetches one checkpoint over this node's data plane, in a thread that is given up with the fetch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import IO, Final

from ces_common.messages.desired import CheckpointSource, DesiredNetwork
from ces_common.names import CHECKPOINTS_PATH
from ces_edge_agent.checkpoints import signed
from ces_edge_agent.checkpoints.fetching import CONNECT_S, PACKING_S, NotFetched, Wanted, allowed_s, fetch, place_of
from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.inputs.background_call import BackgroundCall, NoAnswer
from ces_edge_agent.ports import Network

HEADROOM: Final = 2**20  # bytes of an archive beside what is in it
Wants = Callable[[], bool]


class Fetcher:
    """``seed``: of the key with which the node has joined; ``limit``: bytes of a checkpoint."""

    def __init__(
        self, node: str, seed: str, network: Network, networks: StoredDocument[DesiredNetwork], limit: int
    ) -> None:
        self._node, self._seed, self._network, self._networks, self._limit = node, seed, network, networks, limit

    async def fetch(self, job: str, source: CheckpointSource, into: IO[bytes], still: Wants) -> str:
        """Write the archive; returns its digest. ``still``: whether it is wanted any more. Raises NotFetched, OSError,
        DataPlaneError."""
        desired = self._networks.current
        address, port = place_of(source.url)
        own = "" if desired is None or desired.mode != "tc" else desired.router
        known = source.checkpoint
        digest = "" if known is None else known.digest
        path = f"/{CHECKPOINTS_PATH}/{job}" + (f"/{digest}" if digest else "")
        wanted = Wanted(self._limit + HEADROOM, None if known is None else known.size, digest or None)
        into.seek(0)
        into.truncate()
        connected = await self._network.dial(address, port, own, CONNECT_S)
        headers = signed.headers(self._seed, self._node, source.node, job, digest)
        fetching = BackgroundCall(partial(fetch, connected, path, headers, into, wanted, still), "ces-checkpoint")
        try:
            return await fetching.call(PACKING_S + allowed_s(wanted.size or wanted.limit))
        except NoAnswer as error:
            raise NotFetched(str(error)) from error
