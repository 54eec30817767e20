"""Names and addresses of a testbed's parts. Pure.

Everything of a cluster can be found by its name alone: namespaces begin with ``ces-<cluster>-``, devices in the root
namespace with a hash of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from ces_common.names import short_hash
from ces_testbed.topology import DATA_PLANE_SUFFIX

POOL = IPv4Network("198.18.0.0/15")  # set aside for testing networks (RFC 2544); routed nowhere
HOST_DEVICE = "mgmt0"
# No '-': so that no cluster's prefix is the beginning of another's.
CLUSTER_NAME = re.compile(r"^[a-z0-9]{1,16}$")


class NoSubnet(RuntimeError):
    """Every subnet of the pool is in use on this machine."""


def check_cluster(name: str) -> str:
    """``name`` if it can name a cluster. Raises ValueError."""
    if not CLUSTER_NAME.match(name):
        raise ValueError(f"{name!r} cannot name a cluster: use 1 to 16 lower-case letters and digits")
    return name


def namespace_prefix(cluster: str) -> str:
    return f"ces-{cluster}-"


def host_namespace(cluster: str, node: str) -> str:
    """Where a host's agent runs."""
    return namespace_prefix(cluster) + node


def data_plane(cluster: str, node: str) -> str:
    """Where a host's wires and worker endpoints are."""
    return host_namespace(cluster, node) + DATA_PLANE_SUFFIX


def cluster_of(namespace: str) -> str | None:
    """The cluster in a namespace's name; None where it is not one of CES's."""
    parts = namespace.split("-", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "ces" and CLUSTER_NAME.match(parts[1]) else None


def device_prefix(cluster: str) -> str:
    """How the cluster's devices in the root namespace begin; at most 10 of the 15 characters there are."""
    return f"ces{short_hash(cluster, 6)}-"


def bridge_device(cluster: str) -> str:
    return device_prefix(cluster) + "br"


def management_device(cluster: str, node: str) -> str:
    """The root namespace's end of a host's management cable."""
    return device_prefix(cluster) + short_hash(node, 5)


def choose_subnet(cluster: str, hosts: int, taken: Iterable[IPv4Network]) -> IPv4Network:
    """A subnet with room for ``hosts`` and the bridge that overlaps nothing in ``taken``. Raises NoSubnet.

    Begins at a place that depends on the cluster's name, so that clusters rarely try for the same one.
    """
    length = min(24, 32 - (hosts + 3).bit_length())
    taken = list(taken)
    subnets = list(POOL.subnets(new_prefix=length))
    start = int(short_hash(cluster, 8), 16) % len(subnets)
    for subnet in subnets[start:] + subnets[:start]:
        if not any(subnet.overlaps(other) for other in taken):
            return subnet
    raise NoSubnet(f"every /{length} of {POOL} is in use on this machine")


def host_address(subnet: IPv4Network, index: int) -> IPv4Interface:
    """The management address of the ``index``-th host; the bridge has the first of the subnet."""
    return IPv4Interface(f"{IPv4Address(int(subnet.network_address) + 2 + index)}/{subnet.prefixlen}")


def bridge_address(subnet: IPv4Network) -> IPv4Interface:
    return IPv4Interface(f"{subnet.network_address + 1}/{subnet.prefixlen}")
