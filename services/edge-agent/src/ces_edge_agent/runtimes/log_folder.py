"""The logs of a node's workers, read from the folder that LogFile writes to."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from ces_edge_agent.ports import LogChunk
from ces_edge_agent.runtimes.log_file import segment_folder, segments
from ces_edge_agent.runtimes.names import check_name

BLOCK = 64 * 1024  # bytes that are searched for line ends at once
RETRIES = 5
T = TypeVar("T")


class _Part(NamedTuple):
    start: int
    end: int
    path: Path


class LogFolder:
    """A LogStore. A segment may be dropped at any time, so that readers list the files again when one has gone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, allocation: str) -> Path:
        """The file with the beginning of an allocation's log. Raises Refused for what cannot name an allocation."""
        return self._folder / f"{check_name(allocation)}.log"

    def create(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def end(self, allocation: str) -> int:
        """Offset behind the last byte; 0 where there is no log."""
        parts = _parts(self.path(allocation))
        return parts[-1].end if parts else 0

    async def read(self, allocation: str, offset: int, limit: int) -> LogChunk | None:
        return await asyncio.to_thread(self._read, allocation, offset, limit)

    async def tail(self, allocation: str, lines: int) -> int | None:
        return await asyncio.to_thread(self._tail, allocation, lines)

    async def discard(self, older_than_s: float, in_use: Collection[str]) -> None:
        await asyncio.to_thread(self._discard, older_than_s, in_use)

    def _read(self, allocation: str, offset: int, limit: int) -> LogChunk | None:
        return self._looking(allocation, lambda parts: _read(parts, offset, limit), LogChunk(offset, b"", more=True))

    def _tail(self, allocation: str, lines: int) -> int | None:
        return self._looking(allocation, lambda parts: _tail(parts, lines), self.end(allocation))

    def _looking(self, allocation: str, look: Callable[[list[_Part]], T], otherwise: T) -> T | None:
        """What ``look`` finds in the log's files, tried again where one of them was dropped meanwhile; ``otherwise``
        where that goes on, None where there is no log."""
        for _ in range(RETRIES):
            parts = _parts(self.path(allocation))
            if not parts:
                return None
            with suppress(FileNotFoundError):
                return look(parts)
        return otherwise

    def _discard(self, older_than_s: float, in_use: Collection[str]) -> None:
        kept = {self.path(allocation) for allocation in in_use}
        for log in self._folder.glob("*.log"):
            newest = max((part.path.stat().st_mtime for part in _parts(log)), default=0.0)
            if log not in kept and time.time() - newest > older_than_s:
                shutil.rmtree(segment_folder(log), ignore_errors=True)
                log.unlink(missing_ok=True)


def _parts(log: Path) -> list[_Part]:
    """Head and segments in order; empty where there is no log."""
    found = []
    for start, path in [(0, log), *segments(log)]:
        try:
            found.append(_Part(start, start + path.stat().st_size, path))
        except FileNotFoundError:
            continue  # dropped meanwhile
    return found


def _read(parts: list[_Part], offset: int, limit: int) -> LogChunk:
    """Ends before a gap, so that the next read begins with it."""
    begin, data, gap = offset, b"", False
    for start, end, path in parts:
        if end <= begin + len(data):
            continue
        if start > begin + len(data):
            if data:
                gap = True
                break
            begin = start
        with path.open("rb") as file:
            file.seek(begin + len(data) - start)
            data += file.read(limit - len(data))
        if len(data) == limit:
            break
    return LogChunk(begin, data, begin - offset, begin + len(data) < parts[-1].end, gap)


def _tail(parts: list[_Part], lines: int) -> int:
    """Goes backwards until it has seen enough ends of lines. The last line may have none yet."""
    wanted, last = lines, parts[-1].end
    following = last
    for start, end, path in reversed(parts):
        if wanted == 0 and end < following:
            return following  # the line's beginning may have been dropped
        following = start
        with path.open("rb") as file:
            while end > start:
                size = min(BLOCK, end - start)
                file.seek(end - size - start)
                block = file.read(size)
                if end == last and not block.endswith(b"\n"):
                    wanted -= 1
                    if wanted < 0:
                        return last
                place = len(block)
                while (place := block.rfind(b"\n", 0, place)) >= 0:
                    if wanted == 0:
                        return end - size + place + 1
                    wanted -= 1
                end -= size
    return 0
