"""An allocation's log file. Standard library only: the shim imports it."""

from __future__ import annotations

import contextlib
import os

LIMIT = 64 * 2**20  # bytes


class LogFile:
    """Appended to and bounded at ``limit`` bytes; what comes past it is dropped, with one notice."""

    def __init__(self, path: str, limit: int) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._room = limit - os.fstat(self._fd).st_size
        self._notice = f"\n[ces] the log has reached its limit of {limit} bytes; further output is dropped\n".encode()

    def write(self, data: bytes) -> None:
        if self._room <= 0:
            return
        text = data if len(data) < self._room else data[: self._room] + self._notice
        self._room -= len(data)
        with contextlib.suppress(OSError):  # a full disk must not end the worker
            while text:
                text = text[os.write(self._fd, text) :]

    def close(self) -> None:
        os.close(self._fd)
