"""How fast the disk under the agent's state folder takes what is written and forced onto it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import psutil

from ces_common.messages.scores import REPEATS, Measurement
from ces_edge_agent.scores.kernels import Absent

PATIENCE_S: Final = 1.5  # for all repeats
_REPEAT_S: Final = 0.2  # that a repeat takes about
_MIB: Final = 2**20
_LARGEST: Final = 8 * _MIB  # of a repeat: flash wears
_SPARE: Final = 256 * _MIB  # that is left free
_IN_MEMORY: Final = frozenset({"tmpfs", "ramfs"})


def measure_disk(folder: Path, clock: Callable[[], float] = time.monotonic) -> Measurement:
    """Bytes per second, each repeat with fdatasync. Raises Absent, OSError."""
    kind = _kind_of(folder)
    if kind in _IN_MEMORY:
        raise Absent(f"the agent's state folder lies in memory ({kind})")
    left = os.statvfs(folder)
    if left.f_bavail * left.f_frsize < _SPARE + _LARGEST:
        raise Absent("too little of the disk is free")
    with tempfile.TemporaryFile(dir=folder) as file:
        began = clock()
        first_s = _write(file.fileno(), _MIB, clock)
        size = size_for(first_s)
        rates: list[float] = []
        while len(rates) < REPEATS and (len(rates) < 2 or clock() - began < PATIENCE_S):
            rates.append(size / max(_write(file.fileno(), size, clock), 1e-9))
    return Measurement(kind="disk", rates=rates, source=f"writes of {size // _MIB} MiB each forced onto {kind or 'it'}")


def size_for(first_s: float) -> int:
    """How much a repeat writes, where the first MiB took so many seconds: whole MiB, of which there are few."""
    return min(max(int(_REPEAT_S / max(first_s, 1e-6)), 1) * _MIB, _LARGEST)


def _write(descriptor: int, size: int, clock: Callable[[], float]) -> float:
    """The seconds that it took."""
    block = os.urandom(_MIB)
    os.lseek(descriptor, 0, os.SEEK_SET)
    began = clock()
    for _ in range(size // _MIB):
        written = 0
        while written < _MIB:
            written += os.write(descriptor, block[written:])
    os.fdatasync(descriptor)
    return clock() - began


def _kind_of(folder: Path) -> str:
    """The file system that the folder lies in; empty where that is not known."""
    path = Path(os.path.realpath(folder))
    mounts: Sequence[tuple[str, str]] = [(each.mountpoint, each.fstype) for each in psutil.disk_partitions(all=True)]
    over = [(len(point), kind) for point, kind in mounts if path.is_relative_to(point)]
    return max(over, key=lambda each: each[0], default=(0, ""))[1]
