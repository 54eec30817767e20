"""Where an allocation's output is written, in bounded space. Standard library only: the shim imports it.

The first half of the limit is kept for good in the log file itself. What comes behind it goes to segments in a folder
beside, each named by the offset of its first byte; the oldest segment goes when there are too many. So the end of a
log, where an error stands, is always kept.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

LIMIT = 64 * 2**20  # bytes of one log, head and segments together
SEGMENTS = 4  # at most; each an eighth of the limit


def segment_folder(log: Path) -> Path:
    return log.with_suffix(".tail")


def segments(log: Path) -> list[tuple[int, Path]]:
    """The segments that exist, oldest first: offset of the first byte, and file."""
    with contextlib.suppress(FileNotFoundError):
        return sorted((int(path.name), path) for path in segment_folder(log).iterdir())
    return []


class LogFile:
    """Appends to a log of at most ``limit`` bytes, also where an earlier writer left off."""

    def __init__(self, path: str, limit: int) -> None:
        self._log = Path(path)
        self._segment_size = max(limit // 2 // SEGMENTS, 1)
        found = segments(self._log)
        self._start, current = found[-1] if found else (0, self._log)
        self._capacity = self._segment_size if found else limit // 2
        self._fd = _open(current)

    @property
    def end(self) -> int:
        """Offset behind the last byte."""
        return self._start + os.fstat(self._fd).st_size

    def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end the worker
            while data:
                room = self._capacity - os.fstat(self._fd).st_size
                if room <= 0:
                    self._begin_segment()
                else:
                    data = data[os.write(self._fd, data[:room]) :]

    def _begin_segment(self) -> None:
        start = self.end
        folder = segment_folder(self._log)
        folder.mkdir(mode=0o700, exist_ok=True)
        for _, path in segments(self._log)[: 1 - SEGMENTS]:
            path.unlink(missing_ok=True)
        following = _open(folder / str(start))
        os.close(self._fd)
        self._fd, self._start, self._capacity = following, start, self._segment_size

    def close(self) -> None:
        os.close(self._fd)


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
