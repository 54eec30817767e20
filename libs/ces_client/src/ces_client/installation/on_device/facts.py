"""What a device is like, before anything is changed there."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

from ces_client.installation.on_device.machine import Machine

NEEDED = ("venv", "ssl", "zlib", "ctypes", "asyncio", "sqlite3")  # parts of Python that some systems package apart
REACH_S = 5.0

# What tries out a module of the kernel that is neither loaded nor on disk, in a network namespace of its own.
TRIALS = {
    "veth": "ip link add ces-a type veth peer name ces-b",
    "vxlan": "ip link add ces-a type vxlan id 1 dstport 4789",
    "sch_htb": "tc qdisc add dev lo root handle 1: htb",
    "cls_u32": "tc qdisc add dev lo root handle 1: htb && "
    "tc filter add dev lo parent 1: protocol ip u32 match u32 0 0 flowid 1:1",
    "nf_tables": None,  # asked by _nftables
}


def facts_of(machine: Machine, order: dict[str, Any]) -> dict[str, Any]:
    """``order``: where it shall reach whom (``reach``), and which modules the kernel needs (``modules``)."""
    reached = {name: _reach(host, port) for name, (host, port) in order["reach"].items()}
    addresses = [address for _, address in reached.values() if address]
    return {
        "python": list(sys.version_info[:3]),
        "lacks": [name for name in NEEDED if importlib.util.find_spec(name) is None],
        "machine": platform.machine(),
        "bits": struct.calcsize("P") * 8,
        "glibc": _glibc(),
        "root": os.geteuid() == 0,
        "free": {path: _free(machine, path) for path in ("/opt", "/var/lib", "/etc")},
        "clock": time.time(),
        "systemd": os.path.isdir(machine.at("/run/systemd/system")),
        "unreached": {name: why for name, (why, _) in reached.items() if why},
        "address": addresses[0] if addresses else None,
        "modules": {name: why for name in order["modules"] for why in [_module(machine, name)] if why},
        "installed": machine.installed(),
    }


def _reach(host: str, port: int) -> tuple[str | None, str | None]:
    """Why it cannot be reached, and from which address it can."""
    try:
        with socket.create_connection((host, port), timeout=REACH_S) as made:
            return None, made.getsockname()[0]
    except OSError as error:
        return f"{host}:{port}: {error.strerror or error}", None


def _free(machine: Machine, path: str) -> int:
    """Bytes; none where nothing can be written."""
    there = machine.at(path)
    while not os.path.isdir(there):
        there = os.path.dirname(there)
    found = os.statvfs(there)
    return 0 if found.f_flag & os.ST_RDONLY else found.f_bavail * found.f_frsize


def _module(machine: Machine, name: str) -> str | None:
    """Why the kernel lacks it; None where it has it, or can load it."""
    if os.path.isdir("/sys/module/" + name) or machine.said(["modprobe", "--dry-run", "--quiet", name]) is None:
        return None
    trial = TRIALS[name]
    if trial is None:
        return _in_namespace(_nftables)
    return machine.said(["unshare", "--net", "sh", "-c", "ip link set lo up && " + trial])


def _glibc() -> list[int] | None:
    """Major and minor; None where the C library is another."""
    try:
        name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        return [int(part) for part in version.split(".")[:2]] if name == "glibc" else None
    except (ValueError, AttributeError, OSError):
        return None


def _nftables() -> None:
    """Asks nftables for its generation (NFT_MSG_GETGEN); raises OSError where nobody answers with one."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as asking:
        asking.settimeout(2)
        asking.send(struct.pack("=IHHIIBBH", 20, 10 << 8 | 16, 1, 1, 0, 0, 0, 0))
        if struct.unpack_from("=IH", asking.recv(4096))[1] == 2:
            raise OSError("the kernel has no nftables")


def _in_namespace(trial: Callable[[], None]) -> str | None:
    """Why the trial fails in a network namespace of its own; None where it does not."""
    child = os.fork()
    if child == 0:
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(0x40000000) == 0:
                trial()
                os._exit(0)
        finally:
            os._exit(1)
    return None if os.waitpid(child, 0)[1] == 0 else "the kernel has no nftables, or a container keeps it away"
