"""Holders of the process runtime: a named network namespace per allocation, with its host name and hosts file."""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import re
import shutil
import socket
import struct
import threading
from pathlib import Path

from ces_common.messages.wanted import Endpoint
from ces_common.naming import short_hash
from ces_edge_agent.ports import Refused
from ces_edge_agent.runtimes import linux, record

NETNS = Path("/run/netns")
_LOCALHOST = "127.0.0.1\tlocalhost\n::1\tlocalhost\n"
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,62})?")


def check_name(name: str) -> str:
    """``name`` if it may become part of a path. Raises Refused."""
    if not _NAME.fullmatch(name):
        raise Refused(f"{name!r} cannot name an allocation: letters, digits, '_', '.' and '-' only")
    return name


def hosts_file(endpoint: Endpoint) -> str:
    """The text of /etc/hosts. Raises Refused for what is no host name or no address."""
    for name, address in endpoint.hosts.items():
        check_host(name)
        try:
            ipaddress.ip_address(address)
        except ValueError as error:
            raise Refused(f"host {name}: {error}") from error
    return _LOCALHOST + "".join(f"{address}\t{name}\n" for name, address in sorted(endpoint.hosts.items()))


def check_host(name: str) -> str:
    if not _HOST_NAME.fullmatch(name):
        raise Refused(f"{name!r} is not a host name")
    return name


class Holders:
    """All holders of one node, remembered in ``folder``. Blocking; allocations are independent of each other."""

    def __init__(self, folder: Path, node: str, isolate: bool) -> None:
        self._folder = folder
        self._node = node
        self._isolate = isolate

    def open(self) -> None:
        """Forget holders whose namespace is gone, as after a reboot."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for entry in self._folder.iterdir():
            if self._isolate and not _is_namespace(self.namespace(entry.name)):
                self.remove(entry.name)

    def all(self) -> dict[str, Path | None]:
        return {
            entry.name: self.namespace(entry.name) if self._isolate else None
            for entry in self._folder.iterdir()
            if (entry / "holder.json").exists()
        }

    def ensure(self, endpoint: Endpoint) -> Path | None:
        """Make the holder, or bring the one that exists up to date. Raises Refused or OSError."""
        folder = self._folder / check_name(endpoint.allocation)
        hosts = hosts_file(endpoint)
        hostname = check_host(endpoint.hostname)
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        file = folder / "hosts"
        if not file.exists() or file.read_text() != hosts:
            file.write_text(hosts)  # in place: workers have this very file mounted
        namespace = self.namespace(endpoint.allocation) if self._isolate else None
        if namespace is not None and not _is_namespace(namespace):
            make_namespace(namespace)
        if not (folder / "holder.json").exists() or self.hostname(endpoint.allocation) != hostname:
            record.write(folder / "holder.json", {"hostname": hostname})
        return namespace

    def remove(self, allocation: str) -> None:
        if self._isolate:
            remove_namespace(self.namespace(allocation))
        shutil.rmtree(self._folder / check_name(allocation), ignore_errors=True)

    def exists(self, allocation: str) -> bool:
        return (self._folder / check_name(allocation) / "holder.json").exists()

    def namespace(self, allocation: str) -> Path:
        """Named after the folder too: two clusters on one machine may call nodes alike."""
        return NETNS / f"ces-{self._node}-{short_hash(f'{self._folder}/{allocation}', 12)}"

    def hosts(self, allocation: str) -> Path:
        return self._folder / allocation / "hosts"

    def hostname(self, allocation: str) -> str:
        text = (self._folder / allocation / "holder.json").read_text()
        return str(json.loads(text)["hostname"])


def make_namespace(path: Path) -> None:
    """A new network namespace under ``path``, its loopback up. Raises OSError."""
    _share_mounts()
    remove_namespace(path)
    path.touch(mode=0o600)
    problem: list[OSError] = []

    def make() -> None:  # in a thread of its own, which alone enters the new namespace and then ends
        try:
            linux.unshare(linux.CLONE_NEWNET)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
            linux.mount("/proc/thread-self/ns/net", str(path), flags=linux.MS_BIND)
        except OSError as error:
            problem.append(error)

    thread = threading.Thread(target=make, name="make-netns")
    thread.start()
    thread.join()
    if problem:
        path.unlink(missing_ok=True)
        raise problem[0]


def remove_namespace(path: Path) -> None:
    """Unname it; the kernel removes it with its last process."""
    if _is_namespace(path):
        linux.unmount(str(path))
    path.unlink(missing_ok=True)


def _is_namespace(path: Path) -> bool:
    """A bare file is what remains where the mount was made in a mount namespace that is gone."""
    try:
        return path.stat().st_dev == os.stat("/proc/self/ns/net").st_dev
    except FileNotFoundError:
        return False


def _share_mounts() -> None:
    """Names made here are to be seen, and removable, in other mount namespaces as well (as ``ip netns`` has it)."""
    NETNS.mkdir(parents=True, exist_ok=True)
    lock = os.open(NETNS, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # mounted over itself twice, the folder would hide what came in between
        try:
            linux.mount("none", str(NETNS), flags=linux.MS_SHARED | linux.MS_REC)
        except OSError:  # not a mount point yet
            linux.mount(str(NETNS), str(NETNS), flags=linux.MS_BIND | linux.MS_REC)
            linux.mount("none", str(NETNS), flags=linux.MS_SHARED | linux.MS_REC)
    finally:
        os.close(lock)
