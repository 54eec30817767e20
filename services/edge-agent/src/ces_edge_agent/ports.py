"""What the agent needs of a runtime and of a network. Real and fake implementations share one contract suite each.

Neither port passes file paths of this machine, so that a runtime may be remote.
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO, Protocol

from ces_common.messages.agent_queries import LinkProbe, LinkProbed
from ces_common.messages.confinement import Confinement
from ces_common.messages.desired import DesiredNetwork, DesiredWorker, Endpoint
from ces_common.messages.reports import FlowUsage, LinkKeys, LinkStatus, LinkUsage, WorkerStatus, WorkerUsage
from ces_common.service import Hint
from ces_edge_agent.checkpoints.archive import Packed

# Allocation -> the network namespace of its sandbox, None where the runtime isolates no network. The name is opaque to
# the agent: runtime and network of one node agree on what it means (on Linux, the file of the namespace).
SandboxNamespaces = Mapping[str, str | None]


SECRETS_DIR = "CES_SECRETS_DIR"
CHECKPOINT = "CES_CHECKPOINT"
NO_SECRETS: Mapping[str, bytes] = MappingProxyType({})


class Refused(Exception):
    """A worker that can never be started as asked, such as one with an unknown image. The text says why."""


class RuntimeUnavailable(Exception):
    """The runtime (the container engine, say) does not answer now; worth trying again."""


class DataPlaneError(Exception):
    """The kernel refused a step of the data plane, or something that it needs is missing. The text says what."""


@dataclass(frozen=True)
class LogChunk:
    """Part of a log: ``data`` begins at ``offset``, and ``dropped`` bytes between what was asked for and ``offset`` are
    no longer kept. ``more``: something is kept behind it; ``gap``: but not the bytes that came next."""

    offset: int
    data: bytes
    dropped: int = 0
    more: bool = False
    gap: bool = False


class LogStore(Protocol):
    """The output of all workers, one log for each allocation. Offsets count every byte that was ever written."""

    async def read(self, allocation: str, offset: int, limit: int) -> LogChunk | None:
        """At most ``limit`` bytes from ``offset`` on; None where there is no log."""

    async def tail(self, allocation: str, lines: int) -> int | None:
        """Offset of the last ``lines`` lines, of those that are kept; None where there is no log."""

    async def discard(self, older_than_s: float, in_use: Collection[str]) -> None:
        """Delete logs that nobody has written to for this long, except those of the allocations in use."""


class Runtime(Protocol):
    """Sandboxes and workers of one node. All calls are idempotent; what exists is adopted, never rebuilt.

    A pod sandbox keeps an allocation's network namespace (and host name and hosts file) before, between and after its
    workers. A worker is known by its key ``<allocation>.<incarnation>``; ended workers stay visible until removed.
    """

    @property
    def logs(self) -> LogStore: ...

    @property
    def confinement(self) -> Confinement:
        """What holds for every worker; known once it is open."""

    async def open(self) -> None:
        """Connect and adopt what an earlier run left. Raises RuntimeUnavailable."""

    async def close(self) -> None:
        """Release all resources of the agent; sandboxes and workers go on."""

    async def sandboxes(self) -> SandboxNamespaces: ...

    async def ensure_sandbox(self, endpoint: Endpoint) -> str | None:
        """Make the sandbox unless it exists; returns its network namespace. Raises Refused or RuntimeUnavailable."""

    async def remove_sandbox(self, allocation: str) -> None: ...

    async def workers(self) -> Mapping[str, WorkerStatus]:
        """Worker key -> state. Includes ended workers with their exit codes."""

    async def prepare(self, worker: DesiredWorker) -> None:
        """Fetch what its start needs, which may take long. Raises Refused, also where a worker's secrets would lie open
        to others, or RuntimeUnavailable."""

    async def start(
        self, worker: DesiredWorker, secrets: Mapping[str, bytes] = NO_SECRETS, checkpoint: IO[bytes] | None = None
    ) -> None:
        """Start it in its allocation's sandbox. ``checkpoint``: an archive; its job's folder then holds that checkpoint
        and nothing else. ``secrets``: file -> content, for the worker alone, in the folder that
        its ``CES_SECRETS_DIR`` names; they are gone as soon as it has ended, also where no agent runs then. Raises
        Refused or RuntimeUnavailable."""

    async def keep_checkpoints(self, jobs: Collection[str]) -> None:
        """Remove what workers of all other jobs left in the folders that ``CES_CHECKPOINT`` named to them. Raises
        RuntimeUnavailable."""

    async def pack_checkpoint(self, job: str, into: IO[bytes], limit: int, seen: str | None) -> Packed | None:
        """Write the newest complete checkpoint in the job's folder as an archive of at most ``limit`` bytes and a
        little; None where there is none, or its mark is the one that was ``seen``. Workers may go on writing. Raises
        Unfit, OSError, RuntimeUnavailable."""

    async def stop(self, key: str, grace_s: float) -> None:
        """SIGTERM, then after the grace SIGKILL; returns when it has ended."""

    async def remove(self, key: str) -> None:
        """Forget an ended worker; its log stays."""

    async def pause(self, key: str) -> None: ...

    async def resume(self, key: str) -> None: ...

    async def limit_cpu(self, key: str, cpu: int, *, usual_weight: bool = False) -> None:
        """From now on a worker that is there gets at most ``cpu`` millicores, paused or not, where the runtime limits
        CPU at all. ``usual_weight``: and the weight that others have, in place of the one it had. Raises
        RuntimeUnavailable, also where the limit cannot be set."""

    async def usage(self) -> list[WorkerUsage]: ...


class Network(Protocol):
    """The data plane of one node. ``apply`` converges; whatever is in place and right is left alone."""

    async def open(self) -> None: ...

    async def close(self) -> None:
        """Release all resources of the agent; the data plane stays."""

    async def apply(self, desired: DesiredNetwork, sandboxes: SandboxNamespaces) -> dict[str, str]:
        """Make the data plane as desired. Returns attempt key -> reason for what could not be done; the key ``""`` is a
        failure of the node's own part, which concerns every attempt."""

    async def usage(self) -> tuple[list[LinkUsage], list[FlowUsage]]:
        """Rates since the last call."""

    @property
    def links_changed(self) -> Hint:
        """Set whenever ``links`` or ``encryption`` may have something new to say."""

    async def links(self) -> list[LinkStatus]:
        """The state of every desired link; empty where links are not watched."""

    async def encryption(self) -> LinkKeys | None:
        """By which keys neighbours encrypt links with this node; None where it can encrypt none."""

    async def rotate_key(self) -> None:
        """Replace the key by which links are encrypted, once neighbours know the next one. Raises DataPlaneError."""

    async def probe(self, query: LinkProbe) -> LinkProbed:
        """Measure the wire to a neighbour, one link at a time. Raises DataPlaneError."""

    @property
    def identity(self) -> Hashable:
        """Changes when the data plane is made again: sockets that listen in the old one hear nobody any more."""

    async def listen(self, address: str, port: int) -> socket.socket:
        """A socket that listens at an address of this node in the data plane. Raises DataPlaneError."""

    async def dial(self, address: str, port: int, source: str, timeout_s: float) -> socket.socket:
        """A connection to another node's address in the data plane, from this one's (``source``). Raises
        DataPlaneError."""

    async def remove(self) -> None:
        """Take down everything that CES made on this node."""
