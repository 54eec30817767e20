"""What a problem is made of, as it is written: nodes and links, tasks and flows."""

from __future__ import annotations

from dataclasses import dataclass

from ces_core.model.profiles import LinkProfile, NodeProfile, TaskProfile


@dataclass(frozen=True)
class Node:
    """An edge device, or a switch where all capacities are zero."""

    name: str
    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0
    cpu_used: float = 0.0
    memory_used: float = 0.0
    gpu_used: float = 0.0
    profile: NodeProfile | None = None


@dataclass(frozen=True)
class Link:
    """A directed connection. Links that name the same medium share that medium's capacity."""

    src: str
    dst: str
    bandwidth: float
    bandwidth_used: float = 0.0
    medium: str | None = None
    profile: LinkProfile | None = None


@dataclass(frozen=True)
class Task:
    """The demand of one task. ``allowed`` lists the only nodes it may run on; None allows all."""

    name: str
    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0
    allowed: tuple[str, ...] | None = None
    profile: TaskProfile | None = None


@dataclass(frozen=True)
class Flow:
    """A directed flow between two tasks. ``@node`` as an end means the node itself (data there, or a sink).

    ``message``: bytes that one request sends. ``sources``: nodes that have the same data; the flow comes from one of
    them, and ``src`` is one of them, too.
    """

    src: str
    dst: str
    min: float
    max: float
    message: float = 0.0
    sources: tuple[str, ...] | None = None
