"""What the agent needs of a runtime and of a network. Real and fake implementations share one contract suite each."""

from __future__ import annotations

import socket
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Protocol

from ces_common.messages.queries import LinkProbe, LinkProbed
from ces_common.messages.reports import FlowUsage, LinkStatus, LinkUsage, WorkerStatus, WorkerUsage
from ces_common.messages.wanted import Endpoint, NetworkWanted, WorkerWanted
from ces_common.service import Hint


class Refused(Exception):
    """A worker that can never be started as asked: an unknown image, a missing program. The text says why."""


class RuntimeUnavailable(Exception):
    """The runtime (the container engine, say) does not answer now; worth trying again."""


class Runtime(Protocol):
    """Holders and workers of one node. All calls are idempotent; what exists is adopted, never rebuilt.

    A holder keeps an allocation's network namespace (and host name and hosts file) before, between and after its
    workers. A worker is known by its key ``<allocation>.<incarnation>``; ended workers stay visible until removed.
    """

    async def open(self) -> None:
        """Connect and adopt what an earlier run left. Raises RuntimeUnavailable."""

    async def close(self) -> None:
        """Let go of everything, stopping nothing."""

    async def holders(self) -> Mapping[str, Path | None]:
        """Allocation -> its network namespace (None where the runtime isolates no network)."""

    async def ensure_holder(self, endpoint: Endpoint) -> Path | None: ...

    async def remove_holder(self, allocation: str) -> None: ...

    async def workers(self) -> Mapping[str, WorkerStatus]:
        """Worker key -> state, the ended ones with their exit codes included."""

    async def start(self, worker: WorkerWanted) -> None:
        """Start it in its allocation's holder. Raises Refused or RuntimeUnavailable."""

    async def stop(self, key: str, grace_s: float) -> None:
        """SIGTERM, then after the grace SIGKILL; returns when it has ended."""

    async def remove(self, key: str) -> None:
        """Forget an ended worker; its log stays."""

    async def pause(self, key: str) -> None: ...

    async def resume(self, key: str) -> None: ...

    async def usage(self) -> list[WorkerUsage]: ...

    def log(self, allocation: str) -> Path:
        """The file that holds all output of an allocation's workers, growing as they write."""


class Network(Protocol):
    """The data plane of one node. ``apply`` converges; whatever is in place and right is left alone."""

    async def open(self) -> None: ...

    async def close(self) -> None:
        """Let go of everything, removing nothing."""

    async def apply(self, wanted: NetworkWanted, holders: Mapping[str, Path | None]) -> dict[str, str]:
        """Make the data plane as wanted. Returns attempt key -> reason for what could not be done; ``""`` as the key
        is a failure of the node's own part, which concerns every attempt."""

    async def usage(self) -> tuple[list[LinkUsage], list[FlowUsage]]:
        """Rates since the last call."""

    @property
    def link_news(self) -> Hint:
        """Set whenever ``links`` may have something new to say."""

    async def links(self) -> list[LinkStatus]:
        """The state of every link that was last asked for; none where links are not looked after."""

    async def probe(self, query: LinkProbe) -> LinkProbed:
        """Measure the wire to a neighbour, of one link at a time. Raises DataPlaneError."""

    @property
    def ground(self) -> Hashable:
        """Differs once what listens here hears nobody any more: the data plane was made anew."""

    async def listen(self, address: str, port: int) -> socket.socket:
        """A socket that listens at an address of this node in the data plane. Raises DataPlaneError."""

    async def remove(self) -> None:
        """Take down everything that CES made on this node."""
