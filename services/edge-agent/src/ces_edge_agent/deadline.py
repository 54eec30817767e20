"""The end of the node's lease as a file, for those who look after workers and outlive the agent: the process runtime's
shim and the docker runtime's holder. Standard library only: the shim imports it.

One line, ``BOOT END END``: the boot that it belongs to, and twice the second of CLOCK_BOOTTIME (steady, and counting
through suspend) at which the lease ends. It is overwritten in place, since a full disk must end no worker and has
room for what is there already; who reads in the middle of that finds two ends that differ, and goes by what was known.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LEASE_OVER = "the lease has run out"
LAST_GRACE_S = 1.0  # for a worker to end by itself once the lease has run out; well within the manager's margin


@dataclass(frozen=True)
class Deadline:
    boot: str
    at: float  # seconds of CLOCK_BOOTTIME


def deadline_file(state_dir: Path) -> Path:
    """Its folder holds nothing that may not be shown to others."""
    return state_dir / "lease" / "deadline"


def make_deadline_file(path: Path) -> None:
    """Readable by all: a holder may be another user."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o755)
    path.touch()
    path.chmod(0o644)


def write_deadline(path: Path, deadline: Deadline) -> None:
    """Raises OSError."""
    end = f"{math.floor(deadline.at * 100) / 100:.2f}"  # hundredths, as in /proc/uptime, and never later than the lease
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(descriptor, f"{deadline.boot} {end} {end}\n".encode(), 0)
    finally:
        os.close(descriptor)


def read_deadline(path: Path) -> Deadline | None:
    """None where it cannot be read, or is just being written."""
    try:
        with path.open() as file:
            boot, end, again = file.readline().split()
        return Deadline(boot, float(end)) if end == again else None
    except (OSError, ValueError):
        return None


def boot_clock() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Watch:
    """Whether the lease has ended, by what the agent last wrote: the very deadline that it goes by itself. Without
    any, or with one of another boot, there is no lease."""

    def __init__(self, path: Path, boot: str, now: Callable[[], float] = boot_clock) -> None:
        self._path, self._boot, self._now = path, boot, now
        self._known: Deadline | None = None

    def lapsed(self) -> bool:
        known = self._known = read_deadline(self._path) or self._known
        return known is None or known.boot != self._boot or self._now() >= known.at
