"""The kernel objects of a data plane, as values. Equal keys name the same object; one that differs otherwise needs a
change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

MAIN_TABLE = 254  # rt_tables(5)
ANYWHERE = "0.0.0.0/0"
HTB_MAJOR = 1  # handle of the root qdisc that shapes a link
ROOT = 0  # stands for "the device itself" where a class minor names the parent
TC_ROOT = 0xFFFFFFFF  # the same in the kernel's messages, TC_H_ROOT

Key = tuple[object, ...]
# Bytes of a packet, counted from the start of its network header: (offset, mask, value).
Match = frozenset[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A VXLAN. ``source``: MAC address of the neighbour's end, whose frames from ``remote`` are the only ones that it
    lets in; empty where it lets in any. ``local``: address that it sends from; empty where the route says from which.
    ``encrypted``: its packets travel inside the node's WireGuard."""

    vni: int
    remote: str
    port: int
    source: str = ""
    local: str = ""
    encrypted: bool = False


@dataclass(frozen=True, slots=True)
class Device:
    """``kind``: an ``endpoint`` is the node's end of a worker's veth; a ``link`` was created by others and is only
    brought up. ``sandbox``: the kernel's number of the namespace at the other end of an endpoint's veth, None while it
    has none."""

    name: str
    kind: Literal["loopback", "link", "vxlan", "endpoint"]
    mtu: int
    mac: str = ""
    tunnel: Tunnel | None = None
    sandbox: int | None = None
    up: bool = True

    @property
    def key(self) -> Key:
        return ("device", self.name)

    def __str__(self) -> str:
        return f"device {self.name}"


@dataclass(frozen=True, slots=True)
class Address:
    device: str
    address: str

    @property
    def key(self) -> Key:
        return ("address", self.device, self.address)

    def __str__(self) -> str:
        return f"address {self.address} on {self.device}"


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """The end of a veth inside a sandbox, configured and routed. ``gso``: largest burst in bytes that the sender hands
    down at once."""

    device: str  # the node's end
    address: str
    mtu: int
    gso: int
    gateway_mac: str

    @property
    def key(self) -> Key:
        return ("worker", self.device)

    def __str__(self) -> str:
        return f"worker's end of {self.device}"


@dataclass(frozen=True, slots=True)
class Route:
    """``device`` is empty for a destination that is to be unreachable."""

    table: int
    destination: str  # with its prefix length
    device: str = ""
    gateway: str | None = None

    @property
    def key(self) -> Key:
        return ("route", self.table, self.destination)

    def __str__(self) -> str:
        return f"route to {self.destination}"


@dataclass(frozen=True, slots=True)
class Rule:
    """Table 0 makes matching destinations unreachable."""

    priority: int
    table: int
    device: str = ""  # where it came in
    source: str | None = None
    destination: str | None = None

    @property
    def key(self) -> Key:
        return ("rule", self)

    def __str__(self) -> str:
        return f"rule {self.priority} for {self.source or 'any'} to {self.destination or 'any'}"


@dataclass(frozen=True, slots=True)
class Shaper:
    """The root HTB of a device. ``default``: minor of the class for packets that no filter matches."""

    device: str
    default: int

    @property
    def key(self) -> Key:
        return ("shaper", self.device)

    def __str__(self) -> str:
        return f"shaper of {self.device}"


@dataclass(frozen=True, slots=True)
class ShapedClass:
    """Rate and ceil in bit/s (whole bytes a second), bursts in microseconds at them, quantum in bytes."""

    device: str
    minor: int
    parent: int
    rate: int
    ceil: int
    burst: int
    cburst: int
    quantum: int
    priority: int

    @property
    def key(self) -> Key:
        return ("class", self.device, self.minor)

    def __str__(self) -> str:
        return f"class {self.minor:x} of {self.device}"


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue of a class; ``limit`` in bytes."""

    device: str
    minor: int  # of the class; also its own major number
    limit: int

    @property
    def key(self) -> Key:
        return ("queue", self.device, self.minor)

    def __str__(self) -> str:
        return f"queue of class {self.minor:x} of {self.device}"


@dataclass(frozen=True, slots=True)
class Filter:
    """Sends matching packets to a class. ``handle``: the kernel's name for it, known once it exists."""

    device: str
    priority: int
    protocol: int  # Ethernet type
    match: Match
    minor: int
    handle: int = field(default=0, compare=False)

    @property
    def key(self) -> Key:
        return ("filter", self.device, self.priority, self.match)

    def __str__(self) -> str:
        return f"filter for class {self.minor:x} of {self.device}"


KernelObject = Device | Address | WorkerEnd | Route | Rule | Shaper | ShapedClass | Queue | Filter
