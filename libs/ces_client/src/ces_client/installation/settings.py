"""The agent's settings on a device that it is installed on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from ces_client.errors import bad_field
from ces_common.hosts import is_loopback

OWN = {  # what the command says itself
    "CES_NODE": "--name",
    "CES_MANAGER_URL": "--manager",
    "CES_JOIN_TOKEN": "nothing: a token is made, and handed over last",  # nosec B105
    "CES_JOIN_TOKEN_FILE": "nothing: a token is made, and handed over last",  # nosec B105
    "CES_STATE_DIR": "nothing: it is /var/lib/ces-agent",
}
NATS_PORT = 4222
_NAME = re.compile(r"CES_[A-Z0-9_]{1,60}")


def read_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """``network=none`` or ``CES_NETWORK=none``: names with ``CES_`` in front. Raises BadInput."""
    found: dict[str, str] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        name = "CES_" + name.strip().upper().removeprefix("CES_")
        if not equals or not _NAME.fullmatch(name):
            raise bad_field(f"{text!r} is no setting", "--set", "it is not KEY=VALUE", "write network=none, say")
        if name in OWN:
            raise bad_field(f"{name} cannot be set", "--set", "the command says it itself", f"use {OWN[name]}")
        if not value.isprintable():
            raise bad_field(f"{name} cannot be set", "--set", "the value holds a control character", "leave it out")
        found[name] = value
    return found


def settings_for(node: str, manager: str, address: str | None, given: Mapping[str, str]) -> dict[str, str]:
    """All that the agent's file holds; the ``process`` runtime and enforced bandwidth where nothing else is given.
    ``address``: from which the device reaches the manager."""
    settings = {"CES_NODE": node, "CES_MANAGER_URL": manager}
    settings |= {"CES_JOIN_TOKEN_FILE": "/var/lib/ces-agent/join-token"}  # nosec B105
    settings |= {"CES_RUNTIME": "process", "CES_NETWORK": "tc"}
    if address is not None:
        settings["CES_HOST_ADDRESS"] = address
    return settings | dict(given)


def env_file(settings: Mapping[str, str]) -> str:
    """As systemd reads it (EnvironmentFile=)."""
    lines = ["# Written by `ces node install`, which writes it again: change it with --set."]
    for name, value in sorted(settings.items()):
        quoted = re.sub(r'(["\\`$])', r"\\\1", value)
        lines.append(f'{name}="{quoted}"')
    return "\n".join(lines) + "\n"


def digest_of(*parts: str) -> str:
    """Hexadecimal; the same for the same parts in the same order."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def manager_url(named: str | None, known: str) -> str:
    """Where devices reach the manager. ``known``: where this machine does. Raises BadInput."""
    url = (named or known).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise bad_field(f"{url} is no URL of a manager", "--manager", "it is not https://HOST:PORT", "write it so")
    if named is None and is_loopback(parts.hostname):
        remedy = "say where devices reach it: --manager https://HOST:8080"
        raise bad_field(f"{url} is this machine's own address", "--manager", "no device reaches it there", remedy)
    return url


def endpoint_of(url: str) -> tuple[str, int]:
    """Host and port of a URL whose host is given."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def nats_endpoint(named: str | None, manager: str) -> tuple[str, int]:
    """Where devices reach NATS: beside the manager, unless said otherwise. Raises BadInput."""
    if named is None:
        return endpoint_of(manager)[0], NATS_PORT
    try:
        parts = urlsplit(f"//{named}")
        if parts.hostname and not parts.path:
            return parts.hostname, parts.port or NATS_PORT
    except ValueError:
        pass
    raise bad_field(f"{named!r} is no address", "--nats", "it is not HOST:PORT", "write 192.0.2.1:4222, say")
