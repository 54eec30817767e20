"""The end of the node's lease as a file, for what watches workers and outlives the agent: the process runtime's shim
and the docker runtime's sandbox. Standard library only: the shim imports it.

The file is one line, ``BOOT END END``: the boot id, and twice the second of CLOCK_BOOTTIME (steady, counting through
suspend) at which the lease ends. It is overwritten in place, which works on a full disk too. A reader that comes in the
middle of a write finds two different ends, and keeps to the deadline it read before.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LEASE_OVER = "the lease has run out"
LAST_GRACE_S = 1.0  # between SIGTERM and SIGKILL once the lease has run out; well within the manager's margin


@dataclass(frozen=True)
class Deadline:
    boot: str
    at: float  # seconds of CLOCK_BOOTTIME


def deadline_file(state_dir: Path) -> Path:
    """In a folder of its own, which sandboxes mount: it must hold nothing secret."""
    return state_dir / "lease" / "deadline"


def make_deadline_file(path: Path) -> None:
    """Create the file, readable by all: a sandbox may run as another user."""
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
    """None if the file cannot be read or is just being written."""
    try:
        with path.open() as file:
            boot, end, again = file.readline().split()
        return Deadline(boot, float(end)) if end == again else None
    except (OSError, ValueError):
        return None


def boot_clock() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaseWatch:
    """Whether the lease has ended, by the deadline that the agent wrote last. No deadline, or one of another boot,
    means that there is no lease. ``outlives_s``: for how long the worker goes on beyond it."""

    def __init__(
        self, path: Path, boot: str, now: Callable[[], float] = boot_clock, *, outlives_s: float = 0.0
    ) -> None:
        self._path, self._boot, self._now, self._outlives_s = path, boot, now, outlives_s
        self._known: Deadline | None = None

    def lapsed(self) -> bool:
        known = self._known = read_deadline(self._path) or self._known
        return known is None or known.boot != self._boot or self._now() >= known.at + self._outlives_s
