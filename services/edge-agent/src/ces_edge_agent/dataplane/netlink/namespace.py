"""Network namespaces: creating and entering them, and their kernel parameters."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pyroute2 import IPRoute, netns

from ces_edge_agent import linux
from ces_edge_agent.own_thread import in_own_thread
from ces_edge_agent.ports import DataPlaneError

DIRECTORY = Path("/run/netns")  # ip-netns(8)
OWN = Path("/proc/thread-self/ns/net")  # the namespace that the agent itself is in: the host's

Result = TypeVar("Result")


def in_namespace(path: Path, function: Callable[[], Result]) -> Result:
    """Call ``function`` in a thread of its own that has entered the namespace. Raises what it raises, and OSError."""

    def enter() -> Result:
        linux.set_namespace(str(path), linux.CLONE_NEWNET)
        return function()

    return in_own_thread(enter, "ces-netns")


@contextmanager
def netlink(path: Path) -> Iterator[IPRoute]:
    """A netlink socket in the namespace, for this thread alone. Raises DataPlaneError if there is no such namespace."""
    ipr = open_netlink(path)
    try:
        yield ipr
    finally:
        ipr.close()


def open_netlink(path: Path) -> IPRoute:
    """Like ``netlink``; the caller closes it. An open socket keeps a namespace alive."""
    try:
        raw = in_namespace(path, lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, socket.NETLINK_ROUTE))
    except OSError as error:
        raise DataPlaneError(f"network namespace {path}: {error.strerror}") from error
    return IPRoute(fileno=raw.detach(), groups=0)


def listing(ipr: IPRoute, method: str, **selection: int) -> list[Any]:
    """All messages of one of pyroute2's ``get_...`` dumps. (Its synchronous form enters the event loop for each
    message, which takes twice as long.)"""

    async def collect() -> list[Any]:
        return [message async for message in await getattr(ipr.asyncore, method)(**selection)]

    return ipr.asyncore.event_loop.run_until_complete(collect())  # type: ignore[no-any-return]


def ensure(name: str) -> Path:
    """Create the named namespace unless it exists; a file that outlived its namespace is replaced. Raises
    DataPlaneError."""
    path = DIRECTORY / name
    if not _is_namespace(path):
        try:
            path.unlink(missing_ok=True)
            netns.create(str(path))
        except OSError as error:
            raise DataPlaneError(f"network namespace {name} cannot be made: {error}") from error
    return path


def remove(name: str) -> None:
    """Delete the namespace's name, if it exists. Raises DataPlaneError."""
    path = DIRECTORY / name
    if path.exists():
        try:
            netns.remove(str(path))
        except OSError as error:
            raise DataPlaneError(f"network namespace {name} cannot be removed: {error}") from error


def identity(path: Path) -> tuple[int, int]:
    """Device and inode, which tell namespaces apart while both exist. Raises OSError."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def set_parameters(path: Path, parameters: dict[str, str]) -> None:
    """Set kernel parameters of a namespace, given by their path below /proc/sys. Where that is read-only, as in a
    container, they are written through a private mount of proc. Raises DataPlaneError."""

    def write() -> None:
        different = {key: value for key, value in parameters.items() if _parameter(key) not in (value, None)}
        if not different:
            return
        try:
            _write(different)
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            _private_mount("proc", "/proc")
            _write(different)

    try:
        in_namespace(path, write)
    except OSError as error:
        raise DataPlaneError(f"kernel parameters of {path} cannot be set: {error}") from error


def set_device_parameter(path: Path, device: str, name: str, value: int) -> None:
    """Set what only sysfs knows of a device of a namespace, through a private mount. Raises OSError."""

    def write() -> None:
        _private_mount("sysfs", "/sys")
        Path("/sys/class/net", device, name).write_text(str(value))

    in_namespace(path, write)


def _parameter(key: str) -> str | None:
    """The value; None where this kernel has no such parameter."""
    try:
        return Path("/proc/sys", key).read_text().strip()
    except FileNotFoundError:
        return None


def _write(parameters: dict[str, str]) -> None:
    for key, value in parameters.items():
        Path("/proc/sys", key).write_text(value)


def _private_mount(kind: str, place: str) -> None:
    """Give this thread, which ends soon, a mount namespace of its own with a fresh /proc or /sys."""
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    linux.mount(kind, place, kind)


def _is_namespace(path: Path) -> bool:
    try:
        in_namespace(path, lambda: None)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINVAL):
            return False
        raise DataPlaneError(f"network namespace {path}: {error.strerror}") from error
    return True
