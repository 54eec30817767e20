"""How much a worker keeps on disk, added up a little at a time. Standard library only: the shim imports it.

Every file and folder counts for a block at least, so that their number has a limit, too. Of a file with several names
each has its share. What was deleted and is still open counts as well, where the kernel lets it be seen.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

DISK = 10 * 2**30  # bytes that a worker may keep, unless the node says otherwise
REST_S = 2.0  # from the end of one count to the beginning of the next
LOOK_S = 0.025  # of time for one look: a twentieth of what passes between two
_BETWEEN_CLOCKS = 256  # entries
_LEAST = 4096  # bytes that an entry counts for
_BLOCK = 512  # bytes, in which the kernel counts
_HIDING = (errno.ENAMETOOLONG, errno.EACCES)


class DiskMeter:
    """``limit``: bytes that may lie in all ``folders`` together. ``processes``: lists those of the worker."""

    def __init__(self, folders: Sequence[str], limit: int, processes: Callable[[], Iterable[int]]) -> None:
        self._folders, self._limit, self._processes = folders, limit, processes
        self._count: Iterator[int] | None = None
        self._found = 0
        self._next = 0.0

    def look(self) -> str | None:
        """Count on for a while. Returns what is wrong: there is more than the limit, or some of it cannot be seen."""
        now = time.monotonic()
        if self._count is None:
            if now < self._next:
                return None
            self._count, self._found = self._all(), 0
        try:
            for number, size in enumerate(self._count, start=1):
                self._found += size
                if self._found > self._limit:
                    return f"disk limit exceeded: more than {self._limit} bytes in its folder"
                if number % _BETWEEN_CLOCKS == 0 and time.monotonic() - now > LOOK_S:
                    return None
        except OSError as error:
            if error.errno in _HIDING:
                return f"disk limit: what it keeps cannot be measured: {error.strerror}"
        self._count, self._next = None, time.monotonic() + REST_S
        return None

    def _all(self) -> Iterator[int]:
        yield from _below(self._folders)
        yield from _deleted(self._processes(), {os.stat(folder).st_dev for folder in self._folders})


def _below(folders: Sequence[str]) -> Iterator[int]:
    """The size of everything in folders. Raises OSError where some of it is hidden; what goes meanwhile is left out."""
    left = list(folders)
    while left:
        path = left.pop()
        try:
            here = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):  # also where something else has taken its place
            continue
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    yield max(_size(found), _LEAST)
                    if stat.S_ISDIR(found.st_mode):
                        left.append(f"{path}/{entry.name}")
        finally:
            os.close(here)


def _deleted(processes: Iterable[int], devices: Collection[int]) -> Iterator[int]:
    """The size of files on these devices that have no name any more and are held open."""
    seen = set()
    for process in processes:
        folder = f"/proc/{process}/fd"
        try:
            names = os.listdir(folder)
        except OSError:  # it has ended, or may not be looked at
            continue
        for name in names:
            try:
                found = os.stat(f"{folder}/{name}")
            except OSError:
                continue
            file = found.st_dev, found.st_ino
            if file not in seen and found.st_nlink == 0 and stat.S_ISREG(found.st_mode) and found.st_dev in devices:
                seen.add(file)
                yield _size(found)


def _size(found: os.stat_result) -> int:
    return found.st_blocks * _BLOCK // max(found.st_nlink if stat.S_ISREG(found.st_mode) else 1, 1)
