"""Names and addresses that become part of paths and of /etc/hosts, checked before they do."""

from __future__ import annotations

import ipaddress
import re

from ces_common.messages.desired import Endpoint
from ces_edge_agent.ports import Refused

_LOCALHOST = "127.0.0.1\tlocalhost\n::1\tlocalhost\n"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,62})?")


def check_name(name: str) -> str:
    """``name`` if it may become part of a path. Raises Refused."""
    if not _NAME.fullmatch(name):
        raise Refused(f"{name!r} cannot name an allocation: letters, digits, '_', '.' and '-' only")
    return name


def check_host(name: str) -> str:
    """``name`` if it is a host name. Raises Refused."""
    if not _HOST_NAME.fullmatch(name):
        raise Refused(f"{name!r} is not a host name")
    return name


def hosts_file(endpoint: Endpoint) -> str:
    """The text of /etc/hosts in a sandbox. Raises Refused for a malformed host name or address."""
    for name, address in endpoint.hosts.items():
        check_host(name)
        try:
            ipaddress.ip_address(address)
        except ValueError as error:
            raise Refused(f"host {name}: {error}") from error
    return _LOCALHOST + "".join(f"{address}\t{name}\n" for name, address in sorted(endpoint.hosts.items()))
