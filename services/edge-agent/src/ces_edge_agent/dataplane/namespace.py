"""Network namespaces: making them, entering them, their kernel parameters.

A namespace is entered by a thread of its own, which ends afterwards: no other thread of the agent ever leaves the
host's namespace.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pyroute2 import IPRoute, netns

from ces_edge_agent.dataplane.errors import DataPlaneError

DIRECTORY = Path("/run/netns")  # ip-netns(8)
OWN = Path("/proc/thread-self/ns/net")  # the namespace that the agent itself is in: the host's

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18

Result = TypeVar("Result")
_libc = ctypes.CDLL(None, use_errno=True)


def in_namespace(path: Path, function: Callable[[], Result]) -> Result:
    """Call ``function`` in a thread that has entered the namespace. Raises what it raises, and OSError."""
    results: list[Result] = []
    errors: list[Exception] = []

    def enter() -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                _check(_libc.setns(descriptor, CLONE_NEWNET), f"enter {path}")
            finally:
                os.close(descriptor)
            results.append(function())
        except Exception as error:  # handed to the caller below
            errors.append(error)

    thread = threading.Thread(target=enter, name="ces-netns")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


@contextmanager
def netlink(path: Path) -> Iterator[IPRoute]:
    """A netlink socket of the namespace, to be used by this thread alone. Raises DataPlaneError if it is not there."""
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
    """All messages of one of pyroute2's ``get_...`` listings. (Its synchronous form enters the event loop once for
    each message, which takes twice as long.)"""

    async def collect() -> list[Any]:
        return [message async for message in await getattr(ipr.asyncore, method)(**selection)]

    return ipr.asyncore.event_loop.run_until_complete(collect())  # type: ignore[no-any-return]


def ensure(name: str) -> Path:
    """Create the named namespace unless it is there. A file that outlived its namespace is replaced."""
    path = DIRECTORY / name
    if not _is_namespace(path):
        try:
            path.unlink(missing_ok=True)
            netns.create(str(path))
        except OSError as error:
            raise DataPlaneError(f"network namespace {name} cannot be made: {error}") from error
    return path


def remove(name: str) -> None:
    """Nothing happens if it is not there."""
    path = DIRECTORY / name
    if path.exists():
        try:
            netns.remove(str(path))
        except OSError as error:
            raise DataPlaneError(f"network namespace {name} cannot be removed: {error}") from error


def identity(path: Path) -> tuple[int, int]:
    """Tells namespaces apart while both exist. Raises OSError."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def set_parameters(path: Path, parameters: dict[str, str]) -> None:
    """Kernel parameters of a namespace, by their path below /proc/sys. In a container /proc/sys is read-only; then
    they are written through a proc file system of our own, mounted where nobody else sees it. Raises DataPlaneError."""

    def write() -> None:
        different = {key: value for key, value in parameters.items() if _parameter(key) not in (value, None)}
        if not different:
            return
        try:
            _write(different)
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            _private_proc()
            _write(different)

    try:
        in_namespace(path, write)
    except OSError as error:
        raise DataPlaneError(f"kernel parameters of {path} cannot be set: {error}") from error


def _parameter(key: str) -> str | None:
    """None: this kernel has no such parameter."""
    try:
        return Path("/proc/sys", key).read_text().strip()
    except FileNotFoundError:
        return None


def _write(parameters: dict[str, str]) -> None:
    for key, value in parameters.items():
        Path("/proc/sys", key).write_text(value)


def _private_proc() -> None:
    """Give this thread, which ends soon, a mount namespace of its own with a fresh /proc."""
    _check(_libc.unshare(CLONE_NEWNS), "unshare the mount namespace")
    _check(_libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "make mounts private")
    _check(_libc.mount(b"proc", b"/proc", b"proc", 0, None), "mount proc")


def _is_namespace(path: Path) -> bool:
    try:
        in_namespace(path, lambda: None)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINVAL):
            return False
        raise DataPlaneError(f"network namespace {path}: {error.strerror}") from error
    return True


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
