"""CPU use of workers, from the CPU time that their processes have used so far."""

from __future__ import annotations

import time
from collections.abc import Collection


class CpuMeter:
    """Remembers the last sample of each worker."""

    def __init__(self) -> None:
        self._samples: dict[str, tuple[float, float]] = {}

    def start(self, worker: str) -> None:
        """The worker starts now, with no time used."""
        self._samples[worker] = (time.monotonic(), 0.0)

    def sample(self, worker: str, used_s: float) -> float:
        """Millicores since the last sample; 0 at the first one."""
        now = time.monotonic()
        since, before = self._samples.get(worker, (now, used_s))
        self._samples[worker] = (now, used_s)
        return max(0.0, used_s - before) / (now - since) * 1000 if now > since else 0.0

    def keep(self, workers: Collection[str]) -> None:
        """Forget all other workers."""
        self._samples = {worker: sample for worker, sample in self._samples.items() if worker in workers}
