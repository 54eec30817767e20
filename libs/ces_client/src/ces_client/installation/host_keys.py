"""Host keys as ssh keeps them, and their fingerprints as it shows them."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

from ces_client.errors import bad_field


@dataclass(frozen=True)
class HostKey:
    """``kind``: such as ``ssh-ed25519``; ``line``: as it stands in a file of known hosts."""

    kind: str
    fingerprint: str
    line: str

    @property
    def names(self) -> list[str]:
        """Of the hosts that have it."""
        first = self.line.split()[0]
        return ["a name that is hashed there"] if first.startswith("|") else first.split(",")


def read_keys(known_hosts: str) -> list[HostKey]:
    """The keys in a file of known hosts; what is none is passed over."""
    found = []
    for line in known_hosts.splitlines():
        words = line.split()
        if len(words) < 3 or words[0].startswith(("#", "@")):
            continue
        try:
            blob = base64.b64decode(words[2], validate=True)
        except ValueError:
            continue
        found.append(HostKey(words[1], fingerprint_of(blob), line))
    return found


def fingerprint_of(blob: bytes) -> str:
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def read_fingerprint(text: str) -> str:
    """One as ``ssh-keygen -lf`` shows it. Raises BadInput."""
    name, _, value = text.strip().partition(":")
    try:
        good = name.upper() == "SHA256" and len(base64.b64decode(value.rstrip("=") + "=", validate=True)) == 32
    except ValueError:
        good = False
    if not good:
        remedy = "copy it from `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the device: SHA256:..."
        raise bad_field(f"{text!r} is no fingerprint", "--host-key", "it is not SHA256: and 43 characters", remedy)
    return "SHA256:" + value.rstrip("=")
