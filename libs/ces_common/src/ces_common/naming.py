"""Names that several parties must derive alike."""

from __future__ import annotations

from hashlib import blake2s

DATA_PLANE = "ces"  # the network namespace that holds a host's data plane
WORKER_DEVICE = "ces0"  # a worker's own end of its veth
DEVICE_LENGTH = 15  # IFNAMSIZ less the closing zero, net_device_cmd(7)


def short_hash(text: str, length: int = 8) -> str:
    return blake2s(text.encode(), digest_size=16).hexdigest()[:length]


def link_device(peer: str) -> str:
    """The device, on a link's source node, that leads to the neighbour ``peer``."""
    name = f"to-{peer}"
    return name if len(name) <= DEVICE_LENGTH else f"to-{short_hash(peer, 12)}"


def endpoint_device(allocation: str) -> str:
    """The node's end of an allocation's veth."""
    return f"w-{short_hash(allocation, 12)}"
