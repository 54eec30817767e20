"""One checkpoint as a tar archive. A checkpoint is a file, or a folder, directly in its job's folder. Programs write it
under another name and rename it, so an entry with a complete name is complete; the newest one counts.

What workers wrote is not trusted: links, foreign files and devices make a checkpoint unfit to be packed, and an archive
is unpacked name by name, with files and folders only.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Final, Literal

from ces_common.messages.checkpoints import CHECKPOINT_NAME

MAX_ENTRIES: Final = 10_000
MAX_DEPTH: Final = 16
MAX_PATH: Final = 2048  # bytes of a path, all of it: with that of a job's folder less than a system call takes
MAX_NAME: Final = 255  # bytes of one name in it, as file systems have it
LATEST: Final = 2**33  # seconds; later changes are dated so, since file systems know none
_NAME = re.compile(CHECKPOINT_NAME)
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # opening a FIFO must not wait for its writer


class Unfit(Exception):
    """A checkpoint that is not copied, or an archive that is no checkpoint. The text says why."""


class TooLarge(Unfit):
    """It has more bytes than were allowed for it."""


@dataclass(frozen=True)
class Packed:
    """What was packed. ``mark``: differs from that of any other checkpoint of the job."""

    name: str
    mark: str


class Budget:
    """Bytes and entries that may still be packed or unpacked."""

    def __init__(self, limit: int) -> None:
        self._limit, self._bytes, self._entries = limit, limit, MAX_ENTRIES

    def take(self, size: int) -> None:
        """Raises Unfit."""
        self._bytes, self._entries = self._bytes - size, self._entries - 1
        if self._bytes < 0:
            raise TooLarge(f"it has more than {self._limit} bytes, which is what a worker may keep, or has room, here")
        if self._entries < 0:
            raise Unfit(f"it has more than {MAX_ENTRIES} files and folders")


def is_complete(name: str) -> bool:
    """Whether an entry of this name is a checkpoint, and not one that is being written."""
    return bool(_NAME.fullmatch(name)) and not name.startswith("tmp") and not name.endswith((".tmp", ".part"))


def newest(folder: Path) -> Packed | None:
    """The newest checkpoint in a job's folder. Raises OSError."""
    found = None
    with os.scandir(folder) as entries:
        for each in entries:
            if is_complete(each.name) and not each.is_symlink():
                status = each.stat(follow_symlinks=False)
                known = (status.st_mtime_ns, each.name, status.st_ino, status.st_size)
                found = known if found is None else max(found, known)
    if found is None:
        return None
    changed, name, inode, size = found
    return Packed(name, f"{name} {changed} {inode} {size}")


def pack(folder: Path, name: str, into: IO[bytes], limit: int) -> None:
    """Write the archive of one checkpoint. All of it must be of the folder's owner. Raises OSError, Unfit."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with tarfile.open(fileobj=into, mode="w", format=tarfile.GNU_FORMAT) as archive:
            _Packing(archive, os.fstat(at).st_uid, Budget(limit)).add(at, name, PurePosixPath(name))
    finally:
        os.close(at)


class _Packing:
    def __init__(self, archive: tarfile.TarFile, owner: int, budget: Budget) -> None:
        self._archive, self._owner, self._budget = archive, owner, budget

    def add(self, folder: int, name: str, path: PurePosixPath) -> None:
        if len(path.parts) > MAX_DEPTH or len(os.fsencode(path)) > MAX_PATH:
            raise Unfit(f"its folders are more than {MAX_DEPTH} deep, or a path has more than {MAX_PATH} bytes")
        try:
            descriptor = os.open(name, _OPEN, dir_fd=folder)
        except OSError as error:
            raise Unfit(f"{path} cannot be opened: {_why(error)}") from error
        try:
            self._add_open(descriptor, path)
        finally:
            os.close(descriptor)

    def _add_open(self, descriptor: int, path: PurePosixPath) -> None:
        before = os.fstat(descriptor)
        if before.st_uid != self._owner:
            raise Unfit(f"{path} belongs to somebody else")
        if stat.S_ISREG(before.st_mode):
            self._budget.take(before.st_size)
            with os.fdopen(descriptor, "rb", closefd=False) as content:
                self._add_file(path, before, content)
            after = os.fstat(descriptor)
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise Unfit(f"{path} was written to while it was packed")
        elif stat.S_ISDIR(before.st_mode):
            self._budget.take(0)
            self._archive.addfile(entry(str(path), None, before.st_mtime))
            with os.scandir(descriptor) as entries:
                children = [each.name for each in islice(entries, MAX_ENTRIES + 1)]
            if len(children) > MAX_ENTRIES:
                raise Unfit(f"{path} has more than {MAX_ENTRIES} files and folders")
            for child in sorted(children):
                self.add(descriptor, child, path / child)
        else:
            raise Unfit(f"{path} is neither a file nor a folder")

    def _add_file(self, path: PurePosixPath, status: os.stat_result, content: IO[bytes]) -> None:
        try:
            self._archive.addfile(entry(str(path), status.st_size, status.st_mtime), content)
        except OSError as error:
            if error.errno is not None:  # the disk's, not of a file that became shorter
                raise
            raise Unfit(f"{path} was written to while it was packed") from error


class _Member(tarfile.TarInfo):
    """A member of an archive that another node has sent. Only what ``pack`` writes is read: other kinds of headers may
    be as large as the archive, and would be read into memory."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:  # tarfile calls it, and says so
        plain = self.type in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)
        if not plain and (self.type != tarfile.GNUTYPE_LONGNAME or self.size > MAX_PATH):
            raise Unfit(f"{self.name!r} is neither a file nor a folder")
        found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return found


def opened(source: IO[bytes], mode: Literal["r:", "r|"]) -> tarfile.TarFile:
    """An archive that another node may have sent. Raises TarError, Unfit."""
    return tarfile.open(fileobj=source, mode=mode, tarinfo=_Member)


def entry(path: str, size: int | None, changed: float) -> tarfile.TarInfo:
    """What the archive says of a file, or of a folder where ``size`` is None. Whose it was it does not say."""
    found = tarfile.TarInfo(path)
    found.mtime = min(max(changed, 0), LATEST)
    found.type, found.mode, found.size = (tarfile.DIRTYPE, 0o700, 0) if size is None else (tarfile.REGTYPE, 0o600, size)
    return found


def checked(archive: tarfile.TarFile, limit: int) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    """Each entry of an archive, and the content where it is a file: all of one checkpoint. Raises Unfit."""
    budget, top, seen, folders = Budget(limit), "", set[str](), set[str]()
    try:
        for found in archive:
            name = found.name.rstrip("/")
            parts = name.split("/")
            if not all(map(_is_plain, parts)) or len(parts) > MAX_DEPTH or len(os.fsencode(name)) > MAX_PATH:
                raise Unfit(f"{found.name!r} is no name in a checkpoint")
            top = top or parts[0]
            if parts[0] != top or not is_complete(top):
                raise Unfit(f"{parts[0]!r} is not the checkpoint's name")
            if not found.isreg() and not found.isdir():
                raise Unfit(f"{found.name} is neither a file nor a folder")
            if name in seen or (parts[1:] and name.rpartition("/")[0] not in folders):
                raise Unfit(f"{found.name!r} comes twice, or without its folder")
            budget.take(found.size if found.isreg() else 0)
            seen.add(name)
            if found.isdir():
                folders.add(name)
            yield entry(name, found.size if found.isreg() else None, found.mtime), archive.extractfile(found)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise Unfit(f"it is no archive: {error}") from error
    if not top:
        raise Unfit("the archive is empty")


def repack(source: IO[bytes], into: IO[bytes], limit: int) -> None:
    """Write the checkpoint in an engine's archive as ``pack`` does. Raises Unfit."""
    try:
        with (
            tarfile.open(fileobj=source, mode="r|") as given,
            tarfile.open(fileobj=into, mode="w", format=tarfile.GNU_FORMAT) as archive,
        ):
            for found, content in checked(given, limit):
                archive.addfile(found, content)
    except tarfile.TarError as error:
        raise Unfit(f"it is no archive: {error}") from error


def unpack(source: IO[bytes], folder: Path, limit: int, uid: int, gid: int) -> None:
    """Put the checkpoint into a folder that nobody else can write to yet. It was changed now: by the clock of another
    node it might be newer than what is written here next. Raises OSError, Unfit."""
    own = os.geteuid() != 0
    try:
        with opened(source, "r|") as archive:
            folders = []
            for found, content in checked(archive, limit):
                path = folder / found.name
                if content is None:
                    path.mkdir(mode=0o700)
                    folders.append((path, found.mtime))
                else:
                    _write(path, content, found)
                if not own:
                    os.chown(path, uid, gid)
            for path, changed in reversed(folders):
                os.utime(path, (changed, changed))
            for path in folder.iterdir():
                os.utime(path)
    except tarfile.TarError as error:
        raise Unfit(f"it is no archive: {error}") from error


def name_of(source: IO[bytes], limit: int) -> str:
    """The name of an archive's checkpoint. All of the archive is checked, and set back to its beginning. Raises
    Unfit."""
    source.seek(0)
    try:
        with opened(source, "r:") as archive:
            names = [found.name.split("/")[0] for found, _ in checked(archive, limit)]
            return names[0]
    except tarfile.TarError as error:
        raise Unfit(f"it is no archive: {error}") from error
    finally:
        source.seek(0)


def _is_plain(name: str) -> bool:
    return name not in ("", ".", "..") and "\0" not in name and len(os.fsencode(name)) <= MAX_NAME


def _write(path: Path, content: IO[bytes], found: tarfile.TarInfo) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while part := content.read(io.DEFAULT_BUFFER_SIZE * 16):
            file.write(part)
    os.utime(path, (found.mtime, found.mtime))


def _why(error: OSError) -> str:
    return "symbolic links are not followed" if error.errno in (errno.ELOOP, errno.EMLINK) else str(error.strerror)
