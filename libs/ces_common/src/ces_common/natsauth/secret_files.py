"""Files that only their owner may read, unless a mode says otherwise, written whole or not at all."""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path


def write_secret(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replace ``path`` with ``text``, with that mode from its first byte on."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, mode)  # whatever the umask says
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def new_key() -> str:
    """A random key of 32 bytes, as a line of ``CES_SECRETS_KEY_FILE``."""
    return base64.b64encode(os.urandom(32)).decode() + "\n"
