"""The kernel objects that make up a data plane, as values.

Two objects are the same thing when their keys are equal, and right when they are equal altogether.
"""

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
    vni: int
    remote: str
    port: int


@dataclass(frozen=True, slots=True)
class Device:
    """``endpoint``: the node's end of a worker's veth; ``link`` is made by somebody else, and only brought up.

    ``holder``: kernel's number of the namespace at the other end of an endpoint's veth, None while it has none."""

    name: str
    kind: Literal["loopback", "link", "vxlan", "endpoint"]
    mtu: int
    mac: str = ""
    tunnel: Tunnel | None = None
    holder: int | None = None
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
    """What a holder has: its own end of the veth, set up and routed. ``gso``: largest burst in bytes that the sender
    hands down at once."""

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
    """``device`` is empty for a destination that shall be unreachable."""

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
    """Table 0: what matches is unreachable."""

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
    """Root HTB of a device. ``default``: minor of the class for what no filter matches."""

    device: str
    default: int

    @property
    def key(self) -> Key:
        return ("shaper", self.device)

    def __str__(self) -> str:
        return f"shaper of {self.device}"


@dataclass(frozen=True, slots=True)
class ShapedClass:
    """Rates in bytes/s, bursts in microseconds at the rate, quantum in bytes."""

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
    """Where packets of a class wait; ``limit`` in bytes."""

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
    """Sends what matches to a class. ``handle`` is the kernel's name for it, known once it is there."""

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
