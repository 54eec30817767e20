"""How much of this machine others use: its whole CPU less what CES uses, or one control group of the owner's."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from ces_common.cgroups import Group, hierarchies
from ces_edge_agent.cpu_time import WorkerTime, machine_time
from ces_edge_agent.lending.decision import Look

SHORT_OF_MEMORY: Final = 0.05
"""Share of the memory: with less than that available, it is short."""


class OwnerLoad:
    """``group``: the owner's control group, below the root of the hierarchies; empty where all counts that is not
    CES's. ``proc``: where the kernel tells of the machine. ``own``: seconds of CPU that this process has used."""

    def __init__(
        self,
        group: str = "",
        *,
        proc: Path = Path("/proc"),
        roots: Mapping[str, str] | None = None,
        own: Callable[[], float] = time.process_time,
    ) -> None:
        roots = hierarchies() if roots is None else roots
        self._group = Group(roots, group.strip("/")) if group else None
        self._proc, self._own, self._time = proc, own, WorkerTime(roots, proc)
        self._since: float | None = None
        self._busy = self._capacity = self._stalled = 0.0
        self._workers: Mapping[int, float] = {}

    @property
    def found(self) -> bool:
        """Whether the owner's group is there, where one is named."""
        return self._group is None or self._group.processor_time() is not None

    def look(self, now: float, workers: Collection[int]) -> Look | None:
        """What has happened since the last call; None at the first one. ``workers``: processes of CES's workers, with
        whom those count that they have started. Raises OSError or ValueError where the kernel does not tell."""
        busy, capacity = self._machine()
        used = self._time.used(workers)
        before, self._since = self._since, now
        stalled = self._group.stalled_time() or 0.0 if self._group is not None else 0.0
        waited, self._stalled = stalled - self._stalled, stalled
        total, others = capacity - self._capacity, busy - self._busy
        if self._group is None:
            others -= sum(max(seconds - self._workers.get(pid, 0.0), 0.0) for pid, seconds in used.items())
        self._busy, self._capacity, self._workers = busy, capacity, used
        if before is None or total <= 0:
            return None
        stalls = waited / (now - before) if now > before else 0.0
        return Look(before, now, _share(others / total), self._short_of_memory(), _share(stalls))

    def _machine(self) -> tuple[float, float]:
        """Seconds of CPU that count as used, without this process's own, and that there were in all."""
        busy, capacity = machine_time(self._proc)
        if self._group is not None:
            return self._group.processor_time() or 0.0, capacity
        return busy - self._own(), capacity

    def _short_of_memory(self) -> bool:
        told = dict(line.split(":") for line in (self._proc / "meminfo").read_text().splitlines()[:5])
        available, total = (int(told[name].split()[0]) for name in ("MemAvailable", "MemTotal"))
        return available < SHORT_OF_MEMORY * total


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
