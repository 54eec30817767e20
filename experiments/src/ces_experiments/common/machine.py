"""On what, with what and how something was measured: what a figure needs to be worth anything later."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import psutil

PACKAGES = ("ces-core", "numpy", "scipy", "highspy", "numba", "onnxruntime")
"""Those whose versions move results."""


def describe() -> dict[str, Any]:
    """The machine, the code and the command line, as they are now."""
    return {
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "load_average": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


class CoreTime(NamedTuple):
    """What all cores have spent since they started, in seconds: ``stolen``, of ``whole``, went to others of the same
    hypervisor. Nothing where the kernel does not tell."""

    stolen: float
    whole: float

    @staticmethod
    def now() -> CoreTime:
        spent = psutil.cpu_times()
        return CoreTime(getattr(spent, "steal", 0.0), sum(spent[:8]))  # guests' time is in the user's

    def stolen_since(self, before: CoreTime) -> float:
        """The share of the cores that others had."""
        return (self.stolen - before.stolen) / max(self.whole - before.whole, 0.01)


def in_words(machine: Mapping[str, Any]) -> str:
    """The machine in a few words, for titles."""
    return f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}"


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def commit() -> str | None:
    """The checkout's commit, with ``+changes`` where files differ from it; None where this is no checkout."""
    head = _git("rev-parse", "HEAD")
    return f"{head}+changes" if head and _git("status", "--porcelain", "--untracked-files=no") else head


@cache
def cpu_model() -> str:
    """As the kernel calls it, else what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model")))
    return next(named, platform.processor() or platform.machine())


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*words: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
