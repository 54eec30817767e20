"""Which cluster of this machine a name belongs to, whoever started it.

Namespaces, bridges and containers are found by their cluster's name alone, on the whole machine. So a cluster that has
any holds its name, in a file that every user can read; who finds it held by another state folder leaves it alone.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from ces_common.messages.base import Message
from ces_testbed.errors import NameTaken
from ces_testbed.processes import Known, Records, marked
from ces_testbed.spec import Files


def _folder() -> Path:
    """Where every user may write, the same for all of them, emptied when the machine starts."""
    shared = Path("/run/lock")
    with suppress(OSError):
        if shared.stat().st_mode & stat.S_IWOTH:
            return shared
    return Path("/tmp")  # noqa: S108  # for all users; names are claimed with O_EXCL and no link is followed


FOLDER = _folder()


class Owner(Message):
    """Who holds a cluster's name: its state folder, and the process that started it."""

    cluster: str
    state: str
    user: str
    pid: int
    started: float  # of the process, in seconds since the epoch

    def __str__(self) -> str:
        since = f"{datetime.fromtimestamp(self.started, UTC).astimezone():%Y-%m-%d %H:%M:%S}"
        return f"{self.state} (user {self.user}, process {self.pid}, since {since})"

    def is_living(self) -> bool:
        """Whether its process or any other of its cluster still runs."""
        if Known("owner", self.pid, self.started).alive():
            return True
        files = Files(Path(self.state))
        return bool(Records(files.processes).living() or marked(files.root))


def owner_of(cluster: str) -> Owner | None:
    """The living owner of a name; None where nothing of one runs any more."""
    owner = _read(_path(cluster))
    return owner if owner is not None and owner.is_living() else None


def other_owner(cluster: str, files: Files) -> Owner | None:
    """The living owner of a name if that is not the cluster with these files."""
    owner = owner_of(cluster)
    return owner if owner is not None and owner.state != str(files.root) else None


def claim(cluster: str, files: Files) -> None:
    """Hold a name for the calling process and the cluster with these files. Raises NameTaken, which names the owner."""
    me = Known.of("owner", os.getpid())
    assert me is not None
    mine = Owner(cluster=cluster, state=str(files.root), user=_user(), pid=me.pid, started=me.started)
    path = _path(cluster)
    try:
        with _exclusively():
            other = other_owner(cluster, files)
            if other is not None:
                raise NameTaken(f"the name {cluster} is held by the cluster in {other}")
            path.unlink(missing_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
            with os.fdopen(handle, "w") as file:
                os.fchmod(handle, 0o644)
                file.write(mine.model_dump_json())
    except OSError as error:
        raise NameTaken(f"the name {cluster} cannot be held: {error.filename or path}: {error.strerror}") from error


def release(cluster: str, files: Files) -> None:
    """Let go of a name that the cluster with these files holds."""
    path = _path(cluster)
    owner = _read(path)
    if owner is not None and owner.state == str(files.root):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _path(cluster: str) -> Path:
    return FOLDER / f"ces-cluster-{cluster}.json"


def _read(path: Path) -> Owner | None:
    try:
        return Owner.model_validate_json(path.read_text())
    except (OSError, ValidationError):
        return None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without a name
        return str(os.getuid())


@contextmanager
def _exclusively() -> Iterator[None]:
    """One process at a time looks and claims."""
    guard = FOLDER / "ces-clusters.lock"
    with suppress(FileExistsError):
        made = os.open(guard, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        os.fchmod(made, 0o644)
        os.close(made)
    handle = os.open(guard, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
