"""Packed checkpoints on this node's disk: those that it has packed for others to fetch, and copies of other nodes'.
Each is complete from when it is there."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import structlog

from ces_common.messages.checkpoints import Checkpoint
from ces_edge_agent.files import sync, write_atomically
from ces_edge_agent.runtimes.names import check_name
from ces_edge_agent.trees import remove_tree

log = structlog.get_logger()
LEFT_FREE = 2**30  # bytes of the disk, at least
_CHUNK = 2**20


class Outdated(Exception):
    """What was to be put there is of an earlier writer than what is there."""


class Shelf:
    """Blocking, and thread-safe as far as files are."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self) -> None:
        """Make the folder, and discard what an agent that ended left unfinished."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for entry in [*self._folder.glob(".*"), *self._folder.glob("*/.*")]:
            entry.unlink()

    def room(self, size: int = 1) -> int:
        """Bytes that may be put here now: some of the disk is left free, which the agent's own records need, and half
        of it to others. Raises OSError where that is less than ``size``."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        disk = os.statvfs(self._folder)
        total, free = disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize
        used = sum(path.lstat().st_size for path in self._folder.rglob("*") if path.is_file())
        room = min(free - max(LEFT_FREE, total // 20), total // 2 - used)
        if room < size:
            raise OSError(errno.ENOSPC, "the disk has no room for it")
        return room

    @contextmanager
    def blank(self) -> Iterator[IO[bytes]]:
        """A file without a name, to be written; ``put`` gives it one."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix=".", delete=False) as file:
            try:
                yield file
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(file.name)

    def put(self, job: str, checkpoint: Checkpoint, file: IO[bytes]) -> None:
        """Keep what ``blank`` gave. Raises OSError, and Outdated where there is one of a later writer."""
        there = self.all(job)
        if any(each.writer > checkpoint.writer for each in there):
            raise Outdated(f"{checkpoint.name} of attempt {checkpoint.attempt} is older than what is kept of {job}")
        file.flush()
        os.fsync(file.fileno())
        around = self._folder / check_name(job)
        around.mkdir(exist_ok=True, mode=0o700)
        write_atomically(around / f"{checkpoint.digest}.json", checkpoint.model_dump_json())
        os.replace(file.name, around / checkpoint.digest)
        sync(around)

    def all(self, job: str) -> list[Checkpoint]:
        """What there is of a job, the newest first."""
        found = []
        around = self._folder / check_name(job)
        for record in around.glob("*.json") if around.is_dir() else ():
            with suppress(OSError, ValueError):
                checkpoint = Checkpoint.model_validate_json(record.read_bytes())
                archive = around / checkpoint.digest
                found.append((checkpoint.writer, archive.stat().st_mtime_ns, checkpoint))
        return [checkpoint for *_, checkpoint in sorted(found, key=lambda each: each[:2], reverse=True)]

    def archive(self, job: str, digest: str) -> IO[bytes] | None:
        """The archive with this digest, opened; None where there is none."""
        if digest not in {each.digest for each in self.all(job)}:
            return None
        try:
            return open(self._folder / check_name(job) / digest, "rb")
        except FileNotFoundError:
            return None

    def jobs(self) -> list[str]:
        return [entry.name for entry in self._folder.iterdir() if entry.is_dir()] if self._folder.is_dir() else []

    def keep(self, wanted: Mapping[str, Collection[str]]) -> None:
        """Remove all but these digests of these jobs, and what is being put there now. Never raises."""
        for job in self.jobs():
            around = self._folder / job
            if not wanted.get(job):
                remove_tree(around)
                continue
            for entry in around.iterdir():
                if not entry.name.startswith(".") and entry.name.removesuffix(".json") not in wanted[job]:
                    with suppress(OSError):
                        entry.unlink()


def digest_of(file: IO[bytes]) -> tuple[str, int]:
    """SHA-256 in hexadecimal, and bytes, of a file from its beginning; set back to it."""
    file.seek(0)
    seen, size = hashlib.sha256(), 0
    while part := file.read(_CHUNK):
        seen.update(part)
        size += len(part)
    file.seek(0)
    return seen.hexdigest(), size


def reopened(file: IO[bytes]) -> IO[bytes]:
    """The same file, to be read, whatever becomes of the one that was written."""
    file.flush()
    return open(file.name, "rb")
