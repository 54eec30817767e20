"""Who takes part: a worker's view of its job, read from the environment that the agent sets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

_T = TypeVar("_T")


class BadEnvironment(ValueError):
    """A variable that a worker needs is absent or makes no sense; the message names it."""


@dataclass(frozen=True)
class Peer:
    """One task of the job: where it listens, and the node it runs on."""

    rank: int
    task: str
    address: str
    port: int
    node: str

    def __str__(self) -> str:
        return f"rank {self.rank} ({self.task} on {self.node}, {self.address}:{self.port})"


@dataclass(frozen=True)
class Flow:
    """Bandwidth that CES reserved from one task to another, in bit/s."""

    src: str
    dst: str
    bandwidth: int


@dataclass(frozen=True)
class Membership:
    """This worker's place among its peers; ``peers`` is ordered by rank and includes the worker itself."""

    job: str
    rank: int
    address: str
    port: int
    peers: tuple[Peer, ...]
    flows: tuple[Flow, ...]

    @property
    def world_size(self) -> int:
        return len(self.peers)

    @property
    def me(self) -> Peer:
        return self.peers[self.rank]

    @property
    def next(self) -> Peer:
        """The peer that this worker sends to in a ring."""
        return self.peers[(self.rank + 1) % self.world_size]

    @property
    def previous(self) -> Peer:
        """The peer that this worker hears from in a ring."""
        return self.peers[(self.rank - 1) % self.world_size]

    def bandwidth_to(self, peer: Peer) -> int | None:
        """What is reserved from this worker to ``peer`` in bit/s; None where nothing is."""
        return next((flow.bandwidth for flow in self.flows if (flow.src, flow.dst) == (self.me.task, peer.task)), None)


def from_environment(environment: Mapping[str, str]) -> Membership:
    """Read ``RANK``, ``WORLD_SIZE`` and the ``CES_*`` variables; raises :class:`BadEnvironment`."""
    rank = _integer(environment, "RANK", 0, 1_000_000)
    world_size = _integer(environment, "WORLD_SIZE", 1, 1_000_000)
    peers = tuple(sorted((_peer(entry) for entry in _entries(environment, "CES_PEERS")), key=lambda p: p.rank))
    if [peer.rank for peer in peers] != list(range(world_size)):
        raise BadEnvironment(
            f"CES_PEERS must name each rank from 0 to {world_size - 1} once (WORLD_SIZE={world_size}), "
            f"but names {[peer.rank for peer in peers]}"
        )
    if rank >= world_size:
        raise BadEnvironment(f"RANK={rank} is not below WORLD_SIZE={world_size}")
    task = _text(environment, "CES_TASK")
    if peers[rank].task != task:
        raise BadEnvironment(f"CES_TASK is {task!r}, but CES_PEERS calls rank {rank} {peers[rank].task!r}")
    return Membership(
        job=_text(environment, "CES_JOB"),
        rank=rank,
        address=_text(environment, "CES_ADDRESS"),
        port=_integer(environment, "CES_PORT", 1, 65535),
        peers=peers,
        flows=tuple(_flow(entry) for entry in _entries(environment, "CES_FLOWS")),
    )


def _text(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise BadEnvironment(f"{name} is not set; this program runs as a worker of a CES job")
    return value


def _integer(environment: Mapping[str, str], name: str, least: int, most: int) -> int:
    text = _text(environment, name)
    try:
        value = int(text)
    except ValueError:
        raise BadEnvironment(f"{name}={text!r} is not a whole number") from None
    if not least <= value <= most:
        raise BadEnvironment(f"{name}={value} is not within {least}..{most}")
    return value


def _entries(environment: Mapping[str, str], name: str) -> list[Any]:
    try:
        value = json.loads(_text(environment, name))
    except json.JSONDecodeError as error:
        raise BadEnvironment(f"{name} is not JSON: {error}") from None
    if not isinstance(value, list):
        raise BadEnvironment(f"{name} must be a JSON list")
    return value


def _peer(entry: Any) -> Peer:
    return Peer(
        rank=_field("CES_PEERS", entry, "rank", int),
        task=_field("CES_PEERS", entry, "task", str),
        address=_field("CES_PEERS", entry, "address", str),
        port=_field("CES_PEERS", entry, "port", int),
        node=_field("CES_PEERS", entry, "node", str),
    )


def _flow(entry: Any) -> Flow:
    return Flow(
        src=_field("CES_FLOWS", entry, "src", str),
        dst=_field("CES_FLOWS", entry, "dst", str),
        bandwidth=_field("CES_FLOWS", entry, "bandwidth", int),
    )


def _field(name: str, entry: Any, key: str, kind: type[_T]) -> _T:
    value = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadEnvironment(f"{name}: every entry needs {key!r} ({kind.__name__}), this one has not: {entry!r}")
    return value
