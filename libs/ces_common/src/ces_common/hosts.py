"""Which hosts are this machine."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_address, ip_network
from typing import Final

WORKERS: Final = IPv4Network("10.64.0.0/10")  # of which a region has a block, and a node of that a subnet
SUBNET_BITS: Final = 24
EMULATED: Final = ip_network("198.18.0.0/15")  # where a local cluster has its services listen when it emulates hosts


def is_loopback(host: str) -> bool:
    """Whether what is said there stays on this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_here(host: str) -> bool:
    """Whether the host is this machine, or part of the network that it may emulate: no proxy leads there."""
    try:
        return is_loopback(host) or ip_address(host) in EMULATED
    except ValueError:
        return False
