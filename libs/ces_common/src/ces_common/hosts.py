"""Which hosts are this machine, so that nothing on the way to them can listen."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Final

EMULATED: Final = ip_network("198.18.0.0/15")  # where a local cluster has its services listen when it emulates hosts


def is_here(host: str) -> bool:
    """Whether the host is this machine, or part of the network that it emulates."""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or (address.version == 4 and address in EMULATED)
