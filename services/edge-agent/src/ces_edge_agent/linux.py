"""Kernel calls that Python's library lacks, and processes as /proc shows them. Standard library only: the shim imports
it."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_SHARED = 0x100000
MNT_DETACH = 0x2

# The same bits as MS_RDONLY, MS_NOSUID and MS_NODEV.
ATTR_RDONLY = 0x1
ATTR_NOSUID = 0x2
ATTR_NODEV = 0x4
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_SYS_MOUNT_SETATTR = 442  # one number on every architecture since Linux 5.12

_OPTIONS = {
    "ro": MS_RDONLY,
    "nosuid": MS_NOSUID,
    "nodev": MS_NODEV,
    "noexec": MS_NOEXEC,
    "noatime": 0x400,
    "nodiratime": 0x800,
    "relatime": 0x200000,
}
_OUT_OF_REACH = {errno.EINVAL, errno.ENOENT, errno.ENOTDIR}  # where another mount lies over one

_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2
_FILTER_INSTRUCTION = 8  # bytes
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _check(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def unshare(flags: int) -> None:
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def set_namespace(path: str, kind: int) -> None:
    """Move the calling thread into the namespace that ``path`` names."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kind)), f"setns {path}")
    finally:
        os.close(fd)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    result = _libc.mount(source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode())
    _check(result, f"mount {target}")


def unmount(target: str) -> None:
    _check(_libc.umount2(target.encode(), MNT_DETACH), f"umount {target}")


def set_mount_attributes(target: str, on: int = 0, off: int = 0, recursive: bool = False) -> None:
    """Change attributes of the mount at ``target``, or of all in it as well (mount_setattr(2))."""
    attributes = struct.pack("QQQQ", on, off, 0, 0)
    result = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(target),
        ctypes.c_uint(_AT_RECURSIVE if recursive else 0),
        attributes,
        ctypes.c_size_t(len(attributes)),
    )
    if result != 0 and ctypes.get_errno() == errno.ENOSYS:
        _remount(os.path.realpath(target), on, off, recursive)
    else:
        _check(result, f"mount_setattr {target}")


def _remount(target: str, on: int, off: int, recursive: bool) -> None:
    """The same, mount by mount, for kernels before 5.12: Jetsons have those for long."""
    within = target.rstrip("/") + "/"
    mounts = {path: flags for path, flags in _mounts().items() if path == target or path.startswith(within)}
    if target not in mounts:
        raise OSError(errno.EINVAL, f"{target} is not where something is mounted")
    for path, flags in mounts.items() if recursive else [(target, mounts[target])]:
        try:
            mount("none", path, flags=MS_REMOUNT | MS_BIND | (flags | on) & ~off)
        except OSError as error:
            if path == target or error.errno not in _OUT_OF_REACH:
                raise


def _mounts() -> dict[str, int]:
    """Where something is mounted -> the flags of what lies on top there (proc_pid_mountinfo(5))."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        fields = line.decode(errors="surrogateescape").split(" ")
        path = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        found[path] = sum(_OPTIONS.get(option, 0) for option in fields[5].split(","))
    return found


def _prctl(option: int, *arguments: int) -> None:
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    _check(_libc.prctl(ctypes.c_int(option), *padded), f"prctl {option}")


def adopt_orphans() -> None:
    """Become the parent of all descendants that lose theirs."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signal_number: int) -> None:
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def set_hostname(name: str) -> None:
    raw = name.encode()
    _check(_libc.sethostname(raw, ctypes.c_size_t(len(raw))), "sethostname")


def capabilities() -> int:
    """The capabilities of this process, a bit each."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)


def drop_privileges(uid: int, gid: int, groups: Sequence[int] = ()) -> None:
    """Become ``uid`` without capabilities or a way to gain any. An ordinary user only loses that way. Raises
    PermissionError for root, whose files a process without capabilities can still read and write."""
    if uid == 0:
        raise PermissionError("a worker must not run as user id 0")
    if capabilities():
        os.setgroups(groups)
        last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
        for capability in range(last + 1):
            _prctl(_PR_CAPBSET_DROP, capability)
        _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
        _check(_libc.capset(header, struct.pack("6I", 0, 0, 0, 0, 0, 0)), "capset")
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def set_syscall_filter(program: bytes) -> None:
    """Have the kernel run a program of classic BPF before each system call of this thread and its children."""
    kept = ctypes.create_string_buffer(program, len(program))
    whole = struct.pack("HxxxxxxP", len(program) // _FILTER_INSTRUCTION, ctypes.addressof(kept))
    pointer = ctypes.create_string_buffer(whole, len(whole))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(pointer))


def _stat(pid: int | str) -> list[str]:
    """The fields of /proc/PID/stat from the state on; the name before may hold any characters."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def children() -> dict[int, list[int]]:
    """The living children of every process that has any: process -> processes."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            fields = _stat(name)
        except (OSError, ValueError):
            continue  # it ended meanwhile
        if fields and fields[0] != "Z":
            found.setdefault(int(fields[1]), []).append(int(name))
    return found


def descendants(pid: int, below: Mapping[int, list[int]] | None = None) -> list[int]:
    """Every living descendant of ``pid``. ``below``: the ``children`` of a moment ago, for who asks of several."""
    table = children() if below is None else below
    found: list[int] = []
    front = [pid]
    while front:
        next_ones = table.get(front.pop(), [])
        found += next_ones
        front += next_ones
    return found


def resident(pids: list[int]) -> int:
    """Resident memory of the processes in bytes; shared pages count for each."""
    total = 0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
        except (OSError, IndexError):
            continue
    return total


def processor_time(pids: list[int]) -> float:
    """Seconds of CPU time that the processes and their ended children have used."""
    total = 0
    for pid in pids:
        try:
            total += sum(int(value) for value in _stat(pid)[11:15])
        except (OSError, IndexError):
            continue
    return total / _TICKS


def carrying(mark: str) -> list[int]:
    """Processes whose environment has the variable ``mark`` (NAME=value)."""
    variable = mark.encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                environment = Path(f"/proc/{name}/environ").read_bytes()
            except OSError:
                continue
            if variable in environment.split(b"\0"):
                found.append(int(name))
    return found


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
