"""A Postgres primary with a standby that follows it, as plain processes with the binaries that pgserver brings."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from os import geteuid
from pathlib import Path

from sqlalchemy.engine import URL

from ces_testbed.spec import free_port

USER = "nobody" if geteuid() == 0 else None  # Postgres refuses to run as root
QUICK = "fsync = off\nmax_connections = 60\nshared_buffers = 16MB\nlisten_addresses = '127.0.0.1'\n"


def binaries() -> Path | None:
    """The folder with initdb and its like, if the user of the servers can run them."""
    found = find_spec("pgserver")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "pginstall" / "bin"
    try:
        _run(folder / "pg_ctl", "--version")
    except (OSError, subprocess.CalledProcessError):
        return None
    return folder


def _run(*command: object) -> None:
    subprocess.run([str(part) for part in command], user=USER, check=True, capture_output=True, timeout=60, cwd="/")


class Server:
    def __init__(self, folder: Path, tools: Path) -> None:
        self.folder, self.tools = folder, tools
        self.port = free_port("127.0.0.1", set())

    @property
    def url(self) -> URL:
        return URL.create("postgresql", username="ces", host="127.0.0.1", port=self.port, database="postgres")

    def create(self) -> None:
        _run(self.tools / "initdb", "-D", self.folder, "-U", "ces", "-A", "trust", "-N")
        self._configure(f"{QUICK}unix_socket_directories = '{self.folder}'\nport = {self.port}\n")

    def follow(self, primary: Server) -> None:
        """Become its standby."""
        _run(
            self.tools / "pg_basebackup",
            *(
                "-h",
                "127.0.0.1",
                "-p",
                primary.port,
                "-U",
                "ces",
                "-D",
                self.folder,
                "-R",
                "-c",
                "fast",
                "-X",
                "stream",
            ),
        )
        self._configure(f"unix_socket_directories = '{self.folder}'\nport = {self.port}\n")

    def _configure(self, text: str) -> None:
        with (self.folder / "postgresql.conf").open("a") as file:
            file.write(text)

    def _ctl(self, *arguments: object) -> None:
        _run(self.tools / "pg_ctl", "-D", self.folder, "-w", *arguments)

    def start(self) -> None:
        self._ctl("-l", self.folder / "log", "start")

    def promote(self) -> None:
        self._ctl("promote")

    def kill(self) -> None:
        """As a power cut does: nothing more is sent to anybody. Without effect where it does not run."""
        if (self.folder / "postmaster.pid").exists():
            self._ctl("-m", "immediate", "stop")


@contextmanager
def _folder() -> Iterator[Path]:
    """Of servers, which end with it."""
    root = Path(tempfile.mkdtemp(prefix="ces-postgres-"))  # not under pytest's own folder, which only root may enter
    try:
        if USER is not None:
            shutil.chown(root, USER)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextmanager
def postgres_server() -> Iterator[Server]:
    """A primary that runs."""
    tools = binaries()
    assert tools is not None
    with _folder() as root:
        server = Server(root / "data", tools)
        try:
            server.create()
            server.start()
            yield server
        finally:
            server.kill()


@contextmanager
def postgres_pair() -> Iterator[tuple[Server, Server]]:
    """A primary that runs, and a standby that follows it."""
    with postgres_server() as primary, _folder() as root:
        standby = Server(root / "data", primary.tools)
        try:
            standby.follow(primary)
            standby.start()
            yield primary, standby
        finally:
            standby.kill()
