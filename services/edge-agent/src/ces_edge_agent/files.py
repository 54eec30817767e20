"""Files that survive a crash at any instant. Standard library only: the shim imports it."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, text: str, mode: int = 0o600, mark: str = "new") -> None:
    """Replace a file's content, on disk when this returns: a reader, or a crash, sees the old or the new, never a
    mixture. ``mark`` tells apart several who may write the same file at once."""
    temporary = path.with_name(f".{path.name}.{mark}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync(path.parent)


def sync(directory: Path) -> None:
    """Which names a folder holds is on disk when this returns."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
