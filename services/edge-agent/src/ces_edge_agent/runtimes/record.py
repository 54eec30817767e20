"""The records of one worker of the process runtime, shared by agent and shim. Standard library only.

A worker's folder holds ``worker.json`` (what to start; written before anything starts), ``claim`` (the shim's process
id; the shim holds a lock on it as long as it lives), ``started.json``, ``paused`` (present while the worker is to be
paused) and ``exit.json``. Whoever links ``claim`` first owns the start, so a worker starts at most once, whatever is
killed when. The lock shows whether the shim lives; a process id alone could have been reused.
"""

from __future__ import annotations

import fcntl
import json
import os
from _thread import get_ident  # the threading module would cost the shim its quick start
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ces_edge_agent.files import sync, write_atomically

_REASON = 500  # characters
UNKNOWN_EXIT = 255  # exit code of a worker whose shim has vanished


@dataclass(frozen=True)
class WorkerRecord:
    """Everything the shim needs. ``cpu`` in millicores, ``memory`` and ``log_limit`` in bytes."""

    key: str
    allocation: str
    incarnation: int
    boot: str
    program: str
    argv: list[str]
    env: dict[str, str]
    folder: str
    confined: bool
    """Whether it gets mounts and process ids of its own."""
    hide: list[str]
    show: list[str]
    """What a confined worker sees even where it lies in something hidden, or in a folder closed to its user."""
    log: str
    log_limit: int
    uid: int
    gid: int
    cpu: int
    memory: int
    pids: int
    cgroup: str
    cgroup_roots: dict[str, str]
    netns: str | None
    hosts: str | None
    hostname: str | None
    deadline: str | None = None
    """The deadline file; None if the worker goes on without a lease."""
    outlives_s: float = 0.0
    """For how long it goes on beyond the deadline."""
    disk: int = 0
    """Bytes that it may keep in its folder, and in any one file; 0 for no limit, as an agent of before has had it."""
    secrets: str | None = None
    """The folder for its secrets in its own mounts, which the shim is given on its standard input; None where it has
    none."""

    checkpoints: str | None = None
    """The folder of its job's checkpoints; None where it has none."""
    lowest: bool = False
    """Whether it gets the CPU that nobody else on the machine wants."""
    devices: list[str] = field(default_factory=list)
    """The device files of GPUs that it sees."""
    gpu: bool = False
    """Whether it sees all of them, in the record of an agent of before."""

    @property
    def writable(self) -> list[str]:
        """The folders that it can write."""
        return [self.folder] if self.checkpoints is None else [self.folder, self.checkpoints]

    def save(self, directory: Path) -> None:
        write(directory / "worker.json", asdict(self))

    @classmethod
    def load(cls, directory: Path) -> WorkerRecord:
        """Raises OSError or ValueError if there is no readable record."""
        try:
            return cls(**json.loads((directory / "worker.json").read_text()))
        except TypeError as error:
            raise ValueError(f"{directory}: {error}") from error


@dataclass(frozen=True)
class Started:
    pid: int
    enforced: list[str]


@dataclass(frozen=True)
class Exit:
    """How a worker ended. ``code`` is 128 + signal if a signal ended it. ``lapsed``: its lease had run out."""

    code: int
    reason: str | None = None
    started: float | None = None
    ended: float | None = None
    lapsed: bool = False


def write(path: Path, value: dict[str, object]) -> None:
    """Write a record atomically; it is on disk when this returns."""
    write_atomically(path, json.dumps(value), mark=_mark())


def _mark() -> str:
    """Differs between threads and processes that write at the same time."""
    return f"{os.getpid()}.{get_ident()}"


def read_started(directory: Path) -> Started | None:
    try:
        return Started(**json.loads((directory / "started.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def read_exit(directory: Path) -> Exit | None:
    try:
        return Exit(**json.loads((directory / "exit.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write_exit(directory: Path, ended: Exit) -> None:
    write(directory / "exit.json", asdict(ended))


def claim(directory: Path) -> int | None:
    """Claim the start of a worker. Returns the locked file's descriptor, or None if it is claimed already."""
    spare = directory / f".claim.{_mark()}"
    fd = os.open(spare, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # locked before it gets its name
        os.write(fd, str(os.getpid()).encode())
        os.fsync(fd)
        os.link(spare, directory / "claim")
    except FileExistsError:
        os.close(fd)
        return None
    finally:
        os.unlink(spare)
    sync(directory)
    return fd


def claimant(directory: Path) -> int | None:
    """Process id of this worker's living shim; None if there is none."""
    try:
        fd = os.open(directory / "claim", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.read(fd, 32))
    finally:
        os.close(fd)
    return None


def secrets_folder(directory: Path) -> Path:
    """Where an agent of before has left the secrets of a worker without mounts of its own."""
    return directory / "secrets"


def shim_log(directory: Path) -> Path:
    """What a worker's shim says of its own troubles."""
    return directory / "shim.log"


def last_words(directory: Path) -> str:
    """``": "`` and the last line of the shim's log, for the end of a message; empty if there is none."""
    try:
        lines = shim_log(directory).read_text(errors="replace").split("\n")
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return f": {said[-1][-_REASON:]}" if said else ""
