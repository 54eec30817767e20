"""TAP devices: network devices whose other end is a program. They stay without one, and have no carrier then."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ces_testbed.enter import enter
from ces_testbed.errors import TestbedError

TUN = Path("/dev/net/tun")
KIND = "tun"  # as the kernel calls what is behind them
TUNSETIFF, TUNSETPERSIST, TUNSETOFFLOAD = 0x400454CA, 0x400454CB, 0x400454D0  # linux/if_tun.h
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
REQUEST = struct.Struct("16sH22x")  # struct ifreq
CSUM, TSO4, TSO6, TSO_ECN, USO4, USO6 = 1, 2, 4, 8, 0x20, 0x40
OFFLOADS = (CSUM | TSO4 | TSO6 | TSO_ECN | USO4 | USO6, CSUM | TSO4 | TSO6 | TSO_ECN)  # the latter before Linux 6.2
LARGEST = (1 << 16) + 64  # bytes of a frame that the kernel has not cut up yet, its headers included

Result = TypeVar("Result")


def why_no_taps() -> str | None:
    """Why there can be none on this machine; None where there can."""
    try:
        os.close(os.open(TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{TUN}: {error.strerror}"
    return None


def make_tap(namespace: str, device: str) -> None:
    """Raises TestbedError."""

    def make() -> None:
        handle = _attached(device)
        try:
            fcntl.ioctl(handle, TUNSETPERSIST, 1)
        finally:
            os.close(handle)

    _inside(namespace, device, make)


def open_tap(namespace: str, device: str) -> int:
    """Become the program at the other end. What is read from the handle was sent by the device, and it receives what is
    written: frames as large as senders made them, each behind a header that says what is left to do on them. Raises
    TestbedError."""

    def attach() -> int:
        handle = _attached(device)
        for offloads in OFFLOADS:
            with contextlib.suppress(OSError):
                fcntl.ioctl(handle, TUNSETOFFLOAD, offloads)
                break
        return handle

    return _inside(namespace, device, attach)


def _attached(device: str) -> int:
    handle = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(handle, TUNSETIFF, REQUEST.pack(device.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    except OSError:
        os.close(handle)
        raise
    return handle


def _inside(namespace: str, device: str, function: Callable[[], Result]) -> Result:
    """Call it in a thread that has entered the namespace."""
    results: list[Result] = []
    errors: list[OSError] = []

    def run() -> None:
        try:
            enter(namespace)
            results.append(function())
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise TestbedError(f"{namespace}: the device {device} cannot be had: {errors[0]}") from errors[0]
    return results[0]
