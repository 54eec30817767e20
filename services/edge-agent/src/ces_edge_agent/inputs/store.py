"""The datasets of a node: each folder directly in the root folder is one, with the folder's name.

Nothing outside a dataset can be reached: a path is opened name by name, each relative to the one before, and symbolic
links are never followed. Names that begin with a dot are hidden.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter, ValidationError

from ces_common.fields import DatasetName
from ces_common.messages.reports import MAX_OFFERED

MAX_LISTED = 10_000  # entries of one folder
_NAME = TypeAdapter(DatasetName)
_STEP = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # opening a FIFO must not wait for its writer
_LINK = {errno.ELOOP, errno.EMLINK}


class Unreadable(Exception):
    """There is nothing of that name that may be read. The text says why, and nothing else about the disk."""


class NotNow(Unreadable):
    """There may be in a while."""


@dataclass(frozen=True)
class File:
    """An open regular file. ``mark`` (its ETag) changes whenever the content does."""

    content: IO[bytes]
    size: int
    mark: str


@dataclass(frozen=True)
class Folder:
    """The entries of a folder. ``complete``: all are listed."""

    files: dict[str, int]  # name -> bytes
    folders: list[str]
    complete: bool


class Store:
    """Reads the disk at each call, as its content may change at any time."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self) -> list[str]:
        """The names of the datasets, at most as many as a report may hold. Raises Unreadable."""
        try:
            with os.scandir(self.root) as entries:
                found = sorted(entry.name for entry in entries if _is_dataset(entry))
        except OSError as error:
            raise Unreadable(f"the folder of all datasets cannot be read: {error.strerror}") from error
        return found[:MAX_OFFERED]

    @contextmanager
    def open(self, dataset: str, path: Sequence[str]) -> Iterator[File | Folder]:
        """The file or folder at ``path`` in a dataset. Raises Unreadable, also for a dataset that ``names`` would not
        list."""
        if not _is_name(dataset):
            raise Unreadable(f"{dataset!r} is no name of a dataset")
        descriptor = self._walk([dataset, *path])
        status = os.fstat(descriptor)
        if not path and not stat.S_ISDIR(status.st_mode):
            os.close(descriptor)
            raise Unreadable(f"{dataset} is no dataset: only folders are")
        if stat.S_ISDIR(status.st_mode):
            try:
                yield _listing(descriptor)
            finally:
                os.close(descriptor)
        elif stat.S_ISREG(status.st_mode):
            with os.fdopen(descriptor, "rb", buffering=0) as content:
                mark = f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"
                yield File(content, status.st_size, mark)
        else:
            os.close(descriptor)
            raise Unreadable("it is neither a file nor a folder")

    def _walk(self, names: Sequence[str]) -> int:
        """A descriptor of the last name. Raises Unreadable."""
        at = -1
        try:
            at = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            for name in names:
                if not name or name.startswith(".") or "/" in name or "\0" in name:
                    raise Unreadable(f"{name!r} is no name of a file or folder here")
                before, at = at, _step(at, name)
                os.close(before)
        except OSError as error:
            _close(at)
            raise Unreadable(_why(error, names)) from error
        except Unreadable:
            _close(at)
            raise
        return at


def _step(folder: int, name: str) -> int:
    return os.open(name, _STEP, dir_fd=folder)


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


def _why(error: OSError, names: Sequence[str]) -> str:
    what = "/".join(names)
    if error.errno in _LINK:
        return f"{what} is, or lies behind, a symbolic link, and none is followed"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return f"{what} is not there"
    return f"{what} cannot be opened: {error.strerror}"


def _is_name(text: str) -> bool:
    try:
        _NAME.validate_python(text)
    except ValidationError:
        return False
    return True


def _is_dataset(entry: os.DirEntry[str]) -> bool:
    return _is_name(entry.name) and entry.is_dir(follow_symlinks=False)


def _listing(descriptor: int) -> Folder:
    files: dict[str, int] = {}
    folders: list[str] = []
    with os.scandir(descriptor) as entries:
        seen = list(islice((entry for entry in entries if not entry.name.startswith(".")), MAX_LISTED + 1))
    for entry in sorted(seen[:MAX_LISTED], key=lambda entry: entry.name):
        try:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                files[entry.name] = entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue  # deleted meanwhile
    return Folder(files, folders, len(seen) <= MAX_LISTED)
