"""Which system calls a worker process may not make: those by which a kernel is administered, or other processes are
looked into. Standard library only: the shim imports it.

A deny-list for seccomp(2), since workers are programs of any kind. What needs a capability would fail anyway; denied
here, a flaw in the kernel's code behind it is out of reach as well.
"""

from __future__ import annotations

import errno
import platform
import struct
from pathlib import Path
from typing import NamedTuple

from ces_edge_agent import linux

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # instructions of classic BPF
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_X32 = 0x40000000
_NAMESPACES = 0x7E020000  # every CLONE_NEW* that clone(2) takes
_AF_ALG, _AF_VSOCK = 38, 40  # the kernel's ciphers; the hypervisor, whom no network namespace keeps away

# What both architectures number alike, since these calls are younger than the second one's own table.
_COMMON = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "open_tree_attr": 467,
}
_X86_64 = {
    "ptrace": 101,
    "syslog": 103,
    "modify_ldt": 154,
    "pivot_root": 155,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "sethostname": 170,
    "setdomainname": 171,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "lookup_dcookie": 212,
    "clock_settime": 227,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "open_by_handle_at": 304,
    "clock_adjtime": 305,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}
_AARCH64 = {
    "lookup_dcookie": 18,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "chroot": 51,
    "quotactl": 60,
    "acct": 89,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "clock_settime": 112,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "sethostname": 161,
    "setdomainname": 162,
    "settimeofday": 170,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "swapon": 224,
    "swapoff": 225,
    "perf_event_open": 241,
    "fanotify_init": 262,
    "open_by_handle_at": 265,
    "clock_adjtime": 266,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}


class Machine(NamedTuple):
    """``arch``: as the kernel's audit names it. ``denied``: numbers of system calls by name."""

    arch: int
    denied: dict[str, int]
    clone: int
    socket: int
    clone3: int = 435


MACHINES = {
    "x86_64": Machine(0xC000003E, _X86_64 | _COMMON, clone=56, socket=41),
    "aarch64": Machine(0xC00000B7, _AARCH64 | _COMMON, clone=220, socket=198),
}


def available() -> bool:
    """Whether this kernel filters system calls, and their numbers are known here."""
    return platform.machine() in MACHINES and Path("/proc/sys/kernel/seccomp/actions_avail").exists()


def install() -> None:
    """Filter the system calls of this process and all that it starts. Needs no_new_privs or CAP_SYS_ADMIN."""
    linux.set_syscall_filter(program(MACHINES[platform.machine()]))


def program(machine: Machine) -> bytes:
    """The filter as instructions of classic BPF."""
    forbidden = [_do(_RETURN, _ERROR | errno.EPERM)]
    lines = [
        _do(_LOAD, _ARCH),
        _do(_EQUAL, machine.arch, if_so=1),
        _do(_RETURN, _KILL),  # the numbers below mean other calls in a program of another architecture
        _do(_LOAD, _NUMBER),
        *_where(_AT_LEAST, _X32, forbidden),
        # Its flags lie in memory, where a filter cannot look: without it, libraries call clone.
        *_where(_EQUAL, machine.clone3, [_do(_RETURN, _ERROR | errno.ENOSYS)]),
    ]
    for number in machine.denied.values():
        lines += _where(_EQUAL, number, forbidden)
    namespaces = [_do(_LOAD, _FIRST_ARGUMENT), *_where(_ANY_BIT, _NAMESPACES, forbidden), _do(_RETURN, _ALLOW)]
    families = [_do(_LOAD, _FIRST_ARGUMENT)]
    for family in (_AF_ALG, _AF_VSOCK):
        families += _where(_EQUAL, family, forbidden)
    lines += _where(_EQUAL, machine.clone, namespaces)
    lines += _where(_EQUAL, machine.socket, families)
    return b"".join([*lines, _do(_RETURN, _ALLOW)])


def _where(test: int, value: int, then: list[bytes]) -> list[bytes]:
    return [_do(test, value, if_not=len(then)), *then]


def _do(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_so, if_not, value)
