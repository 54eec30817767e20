"""Pod sandboxes of the process runtime: a named network namespace per allocation, with its host name and hosts file."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import struct
from pathlib import Path

from ces_common.messages.desired import Endpoint
from ces_common.names import short_hash
from ces_edge_agent import linux
from ces_edge_agent.own_thread import in_own_thread
from ces_edge_agent.runtimes import record
from ces_edge_agent.runtimes.names import check_host, check_name, hosts_file

NETNS = Path("/run/netns")
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1


class Sandboxes:
    """All sandboxes of one node, recorded in ``folder``. Blocking; allocations are independent of each other."""

    def __init__(self, folder: Path, node: str, isolate: bool) -> None:
        self._folder = folder
        self._node = node
        self._isolate = isolate

    def open(self) -> None:
        """Forget sandboxes whose namespace is gone, as after a reboot."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for entry in self._folder.iterdir():
            if self._isolate and not _is_namespace(self.namespace(entry.name)):
                self.remove(entry.name)

    def all(self) -> dict[str, str | None]:
        return {
            entry.name: str(self.namespace(entry.name)) if self._isolate else None
            for entry in self._folder.iterdir()
            if (entry / "sandbox.json").exists()
        }

    def ensure(self, endpoint: Endpoint) -> str | None:
        """Create the sandbox, or update the one that exists; returns its namespace. Raises Refused or OSError."""
        folder = self._folder / check_name(endpoint.allocation)
        hosts = hosts_file(endpoint)
        hostname = check_host(endpoint.hostname)
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        file = folder / "hosts"
        if not file.exists() or file.read_text() != hosts:
            file.write_text(hosts)  # in place: running workers have this file mounted
            file.chmod(0o644)  # for workers of any user
        namespace = self.namespace(endpoint.allocation) if self._isolate else None
        if namespace is not None and not _is_namespace(namespace):
            make_namespace(namespace)
        if not (folder / "sandbox.json").exists() or self.hostname(endpoint.allocation) != hostname:
            record.write(folder / "sandbox.json", {"hostname": hostname})
        return None if namespace is None else str(namespace)

    def remove(self, allocation: str) -> None:
        if self._isolate:
            remove_namespace(self.namespace(allocation))
        shutil.rmtree(self._folder / check_name(allocation), ignore_errors=True)

    def exists(self, allocation: str) -> bool:
        return (self._folder / check_name(allocation) / "sandbox.json").exists()

    def namespace(self, allocation: str) -> Path:
        """The folder is part of the name: two clusters on one machine may have nodes of the same name."""
        return NETNS / f"ces-{self._node}-{short_hash(f'{self._folder}/{allocation}', 12)}"

    def hosts(self, allocation: str) -> Path:
        return self._folder / allocation / "hosts"

    def hostname(self, allocation: str) -> str:
        text = (self._folder / allocation / "sandbox.json").read_text()
        return str(json.loads(text)["hostname"])


def make_namespace(path: Path) -> None:
    """Create a network namespace under the name ``path``, its loopback up. Raises OSError."""
    _share_mounts()
    remove_namespace(path)
    path.touch(mode=0o600)

    def make() -> None:
        linux.unshare(linux.CLONE_NEWNET)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
        linux.mount("/proc/thread-self/ns/net", str(path), flags=linux.MS_BIND)

    try:
        in_own_thread(make, "make-netns")
    except OSError:
        path.unlink(missing_ok=True)
        raise


def remove_namespace(path: Path) -> None:
    """Remove the name; the kernel removes the namespace with its last process."""
    if _is_namespace(path):
        linux.unmount(str(path))
    path.unlink(missing_ok=True)


def _is_namespace(path: Path) -> bool:
    """False for a bare file, which is left where the mount was made in a mount namespace that has gone."""
    try:
        return path.stat().st_dev == os.stat("/proc/self/ns/net").st_dev
    except FileNotFoundError:
        return False


def _share_mounts() -> None:
    """Make names visible and removable in other mount namespaces as well, as ``ip netns`` does."""
    NETNS.mkdir(parents=True, exist_ok=True)
    lock = os.open(NETNS, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # mounting the folder over itself twice would hide names made in between
        try:
            linux.mount("none", str(NETNS), flags=linux.MS_SHARED | linux.MS_REC)
        except OSError:  # not a mount point yet
            linux.mount(str(NETNS), str(NETNS), flags=linux.MS_BIND | linux.MS_REC)
            linux.mount("none", str(NETNS), flags=linux.MS_SHARED | linux.MS_REC)
    finally:
        os.close(lock)
