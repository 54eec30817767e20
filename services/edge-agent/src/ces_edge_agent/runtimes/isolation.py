"""Isolation of a worker process: its namespaces and mounts. Standard library only: the shim imports it.

A worker can read everything, and write its own folder, /tmp and /dev/shm only. Ways out (sockets under /run, the
agent's own files, device files, kernel settings) are hidden or read-only, since a worker may have to keep user id 0 to
read its own program.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path

from ces_edge_agent import linux
from ces_edge_agent.runtimes.record import WorkerRecord

_PLAIN_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_GPU_DEVICES = ("/dev/nvidia*", "/dev/nvhost*", "/dev/nvmap", "/dev/dri/*", "/dev/kfd")
_TMP = "/tmp"  # noqa: S108
_SCRATCH = linux.MS_NOSUID | linux.MS_NODEV
_KERNEL = linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
_READ_ONLY = linux.ATTR_RDONLY | linux.ATTR_NOSUID | linux.ATTR_NODEV


def private_tmp(program: str, argv: list[str]) -> bool:
    """Whether the worker gets a /tmp of its own: not if its program or an argument may lie in /tmp."""
    return not any(f"{_TMP}/" in part for part in (program, *argv))


def enter(record: WorkerRecord) -> None:
    """Give the calling process its namespaces and mounts. Needs CAP_SYS_ADMIN."""
    assert record.netns is not None
    linux.set_namespace(record.netns, linux.CLONE_NEWNET)
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC)
    if record.hostname:
        linux.set_hostname(record.hostname)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    folder = os.open(record.folder, os.O_PATH | os.O_DIRECTORY)
    hosts = os.open(record.hosts, os.O_PATH) if record.hosts else None
    devices = _devices(record.gpu)
    linux.set_mount_attributes("/", on=_READ_ONLY, recursive=True)
    linux.mount("proc", "/proc", "proc", _KERNEL)
    linux.mount("sysfs", "/sys", "sysfs", _KERNEL)
    if hosts is not None:
        _bind(hosts, "/etc/hosts")
    _make_dev(devices)
    if private_tmp(record.program, record.argv):
        linux.mount("tmpfs", _TMP, "tmpfs", _SCRATCH, "mode=1777")
    hidden = outermost([path for path in ("/run", *record.hide) if os.path.isdir(path)])
    for path in hidden:
        linux.mount("tmpfs", path, "tmpfs", _SCRATCH, "mode=755")
    for path in record.hide:
        if os.path.isfile(path):
            linux.mount("/dev/null", path, flags=linux.MS_BIND)
    os.makedirs(record.folder, exist_ok=True)
    _bind(folder, record.folder, off=linux.ATTR_RDONLY)
    for path in hidden:
        linux.set_mount_attributes(path, on=linux.ATTR_RDONLY)


def outermost(paths: list[str]) -> list[str]:
    """The paths that do not lie within another one of them."""
    return [path for path in paths if not any(path.startswith(f"{other}/") for other in paths)]


def _bind(fd: int, path: str, off: int = 0) -> None:
    """Mount what ``fd`` names at ``path`` as well, without the attributes in ``off``."""
    linux.mount(f"/proc/self/fd/{fd}", path, flags=linux.MS_BIND)
    linux.set_mount_attributes(path, off=off)
    os.close(fd)


def _devices(gpu: bool) -> dict[str, int]:
    paths = [f"/dev/{name}" for name in _PLAIN_DEVICES]
    if gpu:
        paths += [path for pattern in _GPU_DEVICES for path in glob.glob(pattern)]
    return {path: os.open(path, os.O_PATH) for path in paths if os.path.exists(path) and not os.path.isdir(path)}


def _make_dev(devices: dict[str, int]) -> None:
    linux.mount("tmpfs", "/dev", "tmpfs", linux.MS_NOSUID, "mode=755,size=64k")
    for path, fd in devices.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).touch()
        _bind(fd, path, off=linux.ATTR_NODEV)
    os.mkdir("/dev/shm", 0o1777)  # noqa: S108
    linux.mount("tmpfs", "/dev/shm", "tmpfs", _SCRATCH, "mode=1777")  # noqa: S108
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{target}", f"/dev/{name}")
    linux.set_mount_attributes("/dev", on=linux.ATTR_RDONLY)
