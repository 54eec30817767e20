"""Confinement of a worker process: its namespaces and mounts. Standard library only: the shim imports it.

A worker sees the host's files as another user would, and can write its own folder, its job's
checkpoints, /dev/shm and, where it has one of its own, /tmp only (see ``private_tmp``). What could
hold secrets or lead out (root's home, the agent's files, sockets under /run, device files, kernel settings) is hidden
or read-only. What it needs to run is shown even where its user could not reach it, as an interpreter in a private home.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from ces_edge_agent import linux
from ces_edge_agent.runtimes import secret_files
from ces_edge_agent.runtimes.record import WorkerRecord

_PLAIN_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_OF_THE_KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "driver", "scsi", "tty")  # in /proc
_TMP = "/tmp"  # noqa: S108
_PRIVATE = ("/run", "/root", "/etc/ces")
_CLOSED, _OPEN = "mode=755", "mode=1777"
_SCRATCH = linux.MS_NOSUID | linux.MS_NODEV
_KERNEL = linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
_READ_ONLY = linux.ATTR_RDONLY | linux.ATTR_NOSUID | linux.ATTR_NODEV


def private_tmp(program: str, argv: list[str]) -> bool:
    """Whether the worker gets an empty, writable /tmp of its own. If its program or an argument may lie in
    /tmp, it sees the host's instead, read-only."""
    return not any(f"{_TMP}/" in part for part in (program, *argv))


def device_groups(devices: Iterable[str]) -> list[int]:
    """The groups that may open these device files."""
    return sorted({os.stat(path).st_gid for path in devices if os.path.exists(path)} - {0})


def enter(record: WorkerRecord, secrets: Mapping[str, bytes]) -> None:
    """Give the calling process its namespaces and mounts. Needs CAP_SYS_ADMIN."""
    if record.netns is not None:
        linux.set_namespace(record.netns, linux.CLONE_NEWNET)
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC)
    if record.hostname:
        linux.set_hostname(record.hostname)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    shown = {path: os.open(path, os.O_PATH) for path in (*record.show, *record.writable) if os.path.exists(path)}
    hosts = os.open(record.hosts, os.O_PATH) if record.hosts else None
    devices = _devices(record.devices)
    linux.set_mount_attributes("/", on=_READ_ONLY, recursive=True)
    _make_proc(writable=bool(record.devices))
    if record.netns is not None:  # it shows the devices of one network
        linux.mount("sysfs", "/sys", "sysfs", _KERNEL)
    if hosts is not None:
        _bind(hosts, "/etc/hosts")
    _make_dev(devices, record.memory)
    covers = dict.fromkeys((*_PRIVATE, *record.hide, *closed_folders(shown)), _CLOSED)
    if private_tmp(record.program, record.argv):
        covers[_TMP] = f"{_OPEN},size={record.memory // 2}"  # memory of its own, as containers have it
    covered = _arrange(covers, shown)
    for path in record.hide:
        if os.path.isfile(path):
            linux.mount("/dev/null", path, flags=linux.MS_BIND)
    if record.secrets is not None:
        _write_secrets(record.secrets, covered, secrets, record)
    for path in record.writable:
        _bind(shown[path], path, off=linux.ATTR_RDONLY)
    for path in covered:
        if covers[path] == _CLOSED:
            linux.set_mount_attributes(path, on=linux.ATTR_RDONLY)


def _write_secrets(folder: str, covered: list[str], secrets: Mapping[str, bytes], record: WorkerRecord) -> None:
    """Into memory that no other process sees. Raises OSError where there is none."""
    if os.path.dirname(folder) not in covered:
        raise OSError(f"there is no {os.path.dirname(folder)} to keep secrets in")
    secret_files.write(folder, secrets, record.uid, record.gid)


def closed_folders(paths: Iterable[str]) -> set[str]:
    """The outermost folder around each path that others than its owner and group cannot enter."""
    found = set()
    for path in paths:
        around = [str(folder) for folder in reversed(Path(path).parents)]
        found.update([folder for folder in around if not os.stat(folder).st_mode & 0o001][:1])
    return found


def _arrange(covers: Mapping[str, str], shown: Mapping[str, int]) -> list[str]:
    """Cover folders with empty ones, and show what lies in a covered one; of nested paths the innermost has its way.
    Returns what was covered."""
    covered: list[str] = []
    for path in sorted({*covers, *shown}, key=lambda path: path.count("/")):
        if path in covers and os.path.isdir(path):
            linux.mount("tmpfs", path, "tmpfs", _SCRATCH, covers[path])
            covered.append(path)
        if path in shown and any(f"{path}/".startswith(f"{cover}/") for cover in covered):
            _make_point(path, shown[path])
            linux.mount(f"/proc/self/fd/{shown[path]}", path, flags=linux.MS_BIND)
    return covered


def _make_point(path: str, fd: int) -> None:
    """Something to mount ``fd`` at."""
    if os.path.isdir(f"/proc/self/fd/{fd}"):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.exists(path):
            Path(path).touch()


def _bind(fd: int, path: str, off: int = 0) -> None:
    """Mount what ``fd`` names at ``path`` as well, without the attributes in ``off``."""
    linux.mount(f"/proc/self/fd/{fd}", path, flags=linux.MS_BIND)
    linux.set_mount_attributes(path, off=off)
    os.close(fd)


def _make_proc(writable: bool) -> None:
    """``writable``: where its processes are concerned, and nowhere else: CUDA gives its threads names there, and does
    not begin where it cannot."""
    linux.mount("proc", "/proc", "proc", _KERNEL & ~linux.MS_RDONLY if writable else _KERNEL)
    for path in (f"/proc/{name}" for name in _OF_THE_KERNEL if writable):
        if os.path.exists(path):
            linux.mount(path, path, flags=linux.MS_BIND)
            linux.set_mount_attributes(path, on=linux.ATTR_RDONLY)


def _devices(more: Iterable[str]) -> dict[str, int]:
    paths = [*(f"/dev/{name}" for name in _PLAIN_DEVICES), *more]
    return {path: os.open(path, os.O_PATH) for path in paths if os.path.exists(path) and not os.path.isdir(path)}


def _make_dev(devices: dict[str, int], memory: int) -> None:
    linux.mount("tmpfs", "/dev", "tmpfs", linux.MS_NOSUID, "mode=755,size=64k")
    for path, fd in devices.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).touch()
        _bind(fd, path, off=linux.ATTR_NODEV)
    os.mkdir("/dev/shm", 0o1777)  # noqa: S108
    linux.mount("tmpfs", "/dev/shm", "tmpfs", _SCRATCH, f"{_OPEN},size={memory}")  # noqa: S108
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{target}", f"/dev/{name}")
    linux.set_mount_attributes("/dev", on=linux.ATTR_RDONLY)
