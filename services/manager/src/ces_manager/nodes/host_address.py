"""Which addresses a node may name as its host's: other nodes send to it what is meant for this one. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from typing import Final

from ces_manager.errors import Invalid

_THIS_NETWORK: Final = IPv4Network("0.0.0.0/8")
REMEDY: Final = "give the address at which the other nodes' hosts reach this one (CES_HOST_ADDRESS)"


def check_host_address(text: str, asked_from: str | None) -> None:
    """``asked_from``: the address from which the node asks to join. A node on the manager's own machine may name a
    loopback address, at which all nodes of that machine reach it. Raises Invalid."""
    address = _address(text)
    if address is None:
        raise Invalid("host_address", f"{text!r} is no IP address; {REMEDY}")
    what = _what_it_is(address)
    if what is not None:
        raise Invalid("host_address", f"{text} is {what}; {REMEDY}")
    if address.is_loopback and not _is_loopback(asked_from):
        raise Invalid("host_address", f"{text} is this machine itself, for whoever uses it; {REMEDY}")


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """None where it is none, or means something on one machine alone ("%eth0")."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        return None if address.scope_id is not None else address.ipv4_mapped or address
    return address


def _what_it_is(address: IPv4Address | IPv6Address) -> str | None:
    """Why nobody is reached at it; None where somebody may be."""
    if address.is_loopback:
        return None
    if address.is_unspecified or (isinstance(address, IPv4Address) and address in _THIS_NETWORK):
        return "no host's address"
    if address.is_link_local:
        return "link-local, and means another host on each link, or a cloud's metadata service"
    if address.is_multicast:
        return "a multicast address"
    return "reserved" if address.is_reserved else None


def _is_loopback(text: str | None) -> bool:
    address = _address(text) if text is not None else None
    return address is not None and address.is_loopback
