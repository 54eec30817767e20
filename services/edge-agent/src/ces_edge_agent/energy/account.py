"""The account of a node's energy, from one look to the next."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import structlog

from ces_common.cgroups import hierarchies
from ces_common.messages.energy import MAX_METERED, MOST_WATTS, EnergyReport
from ces_edge_agent.cpu_time import WorkerTime, machine_time
from ces_edge_agent.energy.attribution import attributed
from ces_edge_agent.energy.meters import MICRO, Meter

log = structlog.get_logger()
LONGEST_S: Final = 60.0
"""Between two looks. What a machine used in a longer gap, which it may have slept through, is not known."""
TOLD_S: Final = 120.0
"""For so long an allocation is still told of that has ended: longer than the manager takes to write it down."""


class Account:
    """``capacity``: millicores that the machine has. ``idle_watts``: what the machine uses without any work; where that
    is not told, the least that it was seen to use. ``proc``: where the kernel tells of the machine."""

    def __init__(
        self,
        meter: Meter,
        capacity: int,
        idle_watts: float | None = None,
        *,
        proc: Path = Path("/proc"),
        roots: Mapping[str, str] | None = None,
    ) -> None:
        self._meter, self._capacity, self._idle_watts, self._proc = meter, capacity, idle_watts, proc
        self._time = WorkerTime(hierarchies() if roots is None else roots, proc)
        self._lock = threading.Lock()  # a look that took too long may still be under way
        self._seen: float | None = None
        self._machine = (0.0, 0.0)
        self._used: Mapping[int, float] = {}
        self._least_watts = float("inf")
        self._total = 0
        self._watts: float | None = None
        self._allocations: dict[str, tuple[int, float]] = {}  # microjoules, and when it last ran; in that order

    def look(self, now: float, workers: Mapping[str, int], reserved: Mapping[str, int]) -> EnergyReport | None:
        """``now``: seconds, steady. ``workers``: allocation -> its worker's process; ``reserved``: allocation ->
        millicores that it holds. None while another look is under way: where a meter hangs, one thread waits for it."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self._seen is not None and now <= self._seen:  # another look has overtaken this one
                return self._report()
            self._watts = None
            try:
                self._count(now, workers, reserved)
            except (OSError, ValueError) as error:  # the kernel does not tell what was used
                self._seen = None
                log.info("energy is not counted now", error=str(error))
            return self._report()
        finally:
            self._lock.release()

    def _count(self, now: float, workers: Mapping[str, int], reserved: Mapping[str, int]) -> None:
        machine, used = machine_time(self._proc), self._time.used(workers.values())
        elapsed_s = 0.0 if self._seen is None else now - self._seen
        busy_s, there_s = (late - early for late, early in zip(machine, self._machine, strict=True))
        # Who is new has begun since the last look, but if it has used more than there was: then it was adopted.
        before = {pid: self._used.get(pid, 0.0 if each <= there_s else each) for pid, each in used.items()}
        seconds = {name: max(used[pid] - before[pid], 0.0) for name, pid in workers.items()}
        begins = self._seen is None
        self._seen, self._machine, self._used = now, machine, used
        energy = self._meter.used(elapsed_s, busy_s / there_s if there_s > 0 else 0.0)
        if begins or energy is None or not 0 < elapsed_s <= LONGEST_S:
            return
        self._watts = min(energy / MICRO / elapsed_s, MOST_WATTS)
        self._least_watts = min(self._least_watts, self._watts)
        idle_watts = self._least_watts if self._idle_watts is None else self._idle_watts
        idle = round(idle_watts * elapsed_s * MICRO)
        parts = attributed(energy, idle, busy_s, seconds, reserved, self._capacity)
        self._total += energy
        for name, part in parts.items():
            had, _ = self._allocations.pop(name, (0, now))
            self._allocations[name] = had + part, now
        while self._allocations:
            oldest = next(iter(self._allocations))
            if len(self._allocations) <= MAX_METERED and now - self._allocations[oldest][1] <= TOLD_S:
                break
            del self._allocations[oldest]

    def _report(self) -> EnergyReport:
        return EnergyReport(
            source=self._meter.source,
            meter=self._meter.name,
            total=self._total,
            watts=self._watts,
            allocations={name: used for name, (used, _) in self._allocations.items()},
        )
