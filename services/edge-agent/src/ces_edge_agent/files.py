"""Files that survive a crash at any instant. Standard library only: the shim imports it."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, text: str, mark: str = "new", owner: tuple[int, int] | None = None) -> None:
    """Replace a file's content and wait until it is on disk. Readers, and the disk after a crash, have the old content
    or the new, never a mixture. ``mark`` must differ between writers of one file that may run at once. ``owner``: the
    user and group that it is to belong to, if not to the writer's."""
    temporary = path.with_name(f".{path.name}.{mark}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        if owner is not None:
            os.fchown(descriptor, *owner)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync(path.parent)


def sync(directory: Path) -> None:
    """Wait until a folder's entries are on disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
