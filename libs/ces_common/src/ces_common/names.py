"""Names and addresses that several parties must derive in the same way."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2s
from ipaddress import ip_network

DATA_PLANE = "ces"  # the network namespace that holds a host's data plane
WORKER_DEVICE = "ces0"  # a worker's own end of its veth
NODE_MARK = "@"  # begins the name of a flow's end that is a node itself, and no task
BORDER_MARK = "--"  # between a region and its gateway, in the name of the node that stands for that one elsewhere
DATA_PORT = 29401  # where a node's data is served, on its own address in the data plane
CHECKPOINTS_PATH = ".checkpoints"  # beneath it; no dataset's name begins with a dot
DEVICE_LENGTH = 15  # IFNAMSIZ less the closing zero, net_device_cmd(7)


def short_hash(text: str, length: int = 8) -> str:
    return blake2s(text.encode(), digest_size=16).hexdigest()[:length]


def node_end(name: str) -> str | None:
    """The node that a flow's end stands for; None where it is a task."""
    return name.removeprefix(NODE_MARK) if name.startswith(NODE_MARK) else None


@lru_cache(maxsize=1 << 16)
def router_address(subnet: str) -> str:
    """The first host of a node's worker subnet: the node's own address in the data plane."""
    return str(next(ip_network(subnet).hosts())) if subnet else ""


def border_node(region: str, gateway: str) -> str:
    """The node that stands for another region's gateway in this one's books."""
    return f"{region}{BORDER_MARK}{gateway}"


def link_device(peer: str) -> str:
    """The device, on a link's source node, that leads to the neighbour ``peer``."""
    name = f"to-{peer}"
    return name if len(name) <= DEVICE_LENGTH else f"to-{short_hash(peer, 12)}"


def endpoint_device(allocation: str) -> str:
    """The node's end of an allocation's veth."""
    return f"w-{short_hash(allocation, 12)}"
