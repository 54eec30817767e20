"""A worker's secrets as files, and on their way to its shim. Standard library only: the shim imports it."""

from __future__ import annotations

import binascii
import json
import os
from collections.abc import Mapping

PRIVATE_FOLDER = "/run/secrets"
"""Where a worker with mounts of its own finds them: in memory, and gone with its mounts."""
_AT_ONCE = 1 << 20


def encode(secrets: Mapping[str, bytes]) -> bytes:
    return json.dumps({name: binascii.b2a_base64(value).decode() for name, value in secrets.items()}).encode()


def decode(data: bytes) -> dict[str, bytes]:
    """Raises ValueError where it was cut off."""
    return {str(name): binascii.a2b_base64(value) for name, value in json.loads(data).items()}


def receive(descriptor: int) -> dict[str, bytes]:
    """What comes over a pipe until its end. Raises ValueError where it was cut off."""
    parts = []
    while part := os.read(descriptor, _AT_ONCE):
        parts.append(part)
    return decode(b"".join(parts))


def write(folder: str, secrets: Mapping[str, bytes], uid: int, gid: int) -> None:
    """Make the folder, for that user alone."""
    os.mkdir(folder, 0o700)
    for name, value in secrets.items():
        path = f"{folder}/{name}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
        with os.fdopen(descriptor, "wb") as file:
            file.write(value)
        os.chown(path, uid, gid)
    os.chown(folder, uid, gid)
