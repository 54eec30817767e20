"""CPU time that the kernel has counted: of the whole machine, and of workers by their control groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from ces_common.cgroups import Group, group_of
from ces_edge_agent import linux

_TICKS_S: Final = 0.01  # of /proc/stat
_IDLE = (3, 4)  # idle, and waiting for disks


def machine_time(proc: Path = Path("/proc")) -> tuple[float, float]:
    """Seconds of CPU that were used, and that there were in all. Raises OSError or ValueError where the kernel does not
    tell."""
    fields = (proc / "stat").read_text().partition("\n")[0].split()[1:9]
    ticks = [int(each) for each in fields]
    capacity = sum(ticks) * _TICKS_S
    return capacity - sum(ticks[i] for i in _IDLE) * _TICKS_S, capacity


class WorkerTime:
    """``roots``: where the hierarchies of control groups are mounted."""

    def __init__(self, roots: Mapping[str, str], proc: Path = Path("/proc")) -> None:
        self._roots, self._proc = roots, proc
        self._mine = group_of(roots, "self", proc)
        self._groups: dict[int, Group | None] = {}  # worker's process -> its control group, where it has one

    def used(self, workers: Collection[int]) -> dict[int, float]:
        """Seconds of CPU that each has used so far, with the processes that it has started. ``workers``: processes."""
        used = {pid: self._used(pid) for pid in workers}
        self._groups = {pid: group for pid, group in self._groups.items() if pid in used}
        alone = [pid for pid, seconds in used.items() if seconds is None]
        below = linux.children() if alone else {}
        counted = {pid: linux.processor_time([pid, *linux.descendants(pid, below)]) for pid in alone}
        return {pid: counted[pid] if seconds is None else seconds for pid, seconds in used.items()}

    def _used(self, pid: int) -> float | None:
        """What its control group counted; None where it has none."""
        if pid not in self._groups:
            group = group_of(self._roots, str(pid), self._proc)
            own = group is not None and (self._mine is None or group.name != self._mine.name)
            self._groups[pid] = group if own else None
        group = self._groups[pid]
        return group.processor_time() if group is not None else None
