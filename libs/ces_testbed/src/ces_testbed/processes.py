"""Processes of a cluster, known for certain: a process id together with the moment its process started.

Every process of a cluster carries the cluster's state directory in its environment (``MARK``) or on its command line,
so that processes are found even if no record of them was written.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

MARK = "CES_TESTBED_STATE"
_LOOK_S = 0.02
_SAME_START_S = 0.5  # clocks may be adjusted between two looks


@dataclass(frozen=True)
class Known:
    """A process and when it started, in seconds since the epoch: ids are used again, the pair is not."""

    name: str
    pid: int
    started: float

    @classmethod
    def of(cls, name: str, pid: int) -> Known | None:
        """None where it has ended."""
        try:
            return cls(name, pid, psutil.Process(pid).create_time())
        except psutil.NoSuchProcess:
            return None

    def alive(self) -> bool:
        """Whether it still runs: not another process with its id, and not one that has ended and only waits to be
        collected."""
        try:
            process = psutil.Process(self.pid)
            same: bool = abs(process.create_time() - self.started) < _SAME_START_S
            return same and bool(process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    def send(self, number: int) -> None:
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Records:
    """What runs, on disk: for ``ces down`` from another shell."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, known: Iterable[Known]) -> None:
        """Raises OSError, as where the disk is full."""
        fresh = self._path.with_name(self._path.name + ".new")
        fresh.write_text(json.dumps([asdict(each) for each in known]))
        fresh.replace(self._path)

    def read(self) -> list[Known]:
        """Empty where there is no record that can be read."""
        try:
            return [Known(**entry) for entry in json.loads(self._path.read_text())]
        except (OSError, ValueError, TypeError):
            return []

    def living(self, name: str | None = None) -> list[Known]:
        return [each for each in self.read() if name in (None, each.name) and each.alive()]


def marked(state: Path) -> list[Known]:
    """Every living process that carries this state directory, the calling one and its ancestors left out."""
    text = str(state)
    mine = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess, OSError):
            if process.pid in mine or process.status() == psutil.STATUS_ZOMBIE:
                continue
            line = process.cmdline()
            if process.environ().get(MARK) == text or _is_shim(line, text):
                found.append(
                    Known(Path(line[0]).name if line else str(process.pid), process.pid, process.create_time())
                )
    return found


def _is_shim(command: list[str], state: str) -> bool:
    """A worker's shim has an empty environment; its command names the worker's folder."""
    folder = state + os.sep
    return any("runtimes.shim" in part for part in command) and any(part.startswith(folder) for part in command)


def end(processes: Sequence[Known], steps: Sequence[tuple[signal.Signals, float]]) -> list[Known]:
    """Send each signal in turn to the processes left, and wait for its seconds at most; returns those still running."""
    left = _alive(processes)
    for number, patience_s in steps:
        for process in left:
            process.send(number)
        deadline = time.monotonic() + patience_s
        while (left := _alive(left)) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
    return left


def _alive(processes: Iterable[Known]) -> list[Known]:
    return [process for process in processes if process.alive()]
