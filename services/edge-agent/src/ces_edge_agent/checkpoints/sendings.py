"""Which archives other nodes fetch from here now. While one is sent, its job's next checkpoint is not packed: the new
one would be named to them in its stead, and over a slow link none would ever arrive."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Final

from ces_edge_agent.checkpoints.download import allowed_s

SETTLE_S: Final = 10.0  # in which who has all of it says so


class Sendings:
    """Thread-safe. Times are those of ``puts_off``'s caller."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now: Counter[str] = Counter()  # job -> readers
        self._sizes: dict[str, int] = {}  # job -> bytes of the largest archive that was sent
        self._seen: dict[str, float] = {}  # job -> when it was last seen that one is sent
        self._since: dict[str, float] = {}  # job -> since when its next checkpoint has been put off

    @contextmanager
    def sending(self, job: str, size: int) -> Iterator[None]:
        with self._lock:
            self._now[job] += 1
            self._sizes[job] = max(size, self._sizes.get(job, 0))
        try:
            yield
        finally:
            with self._lock:
                self._now[job] -= 1

    def keep(self, jobs: Container[str]) -> None:
        """Forget all others of which nothing is sent."""
        with self._lock:
            for job in [job for job in self._sizes if job not in jobs and not self._now[job]]:
                for known in (self._now, self._seen, self._since, self._sizes):
                    known.pop(job, None)

    def puts_off(self, job: str, now: float) -> bool:
        """Whether the job's next checkpoint, which is due, is to wait: no longer than a fetch may take in all."""
        with self._lock:
            if job not in self._sizes:
                return False
            if self._now[job] or job not in self._seen:
                self._seen[job] = now
            since = self._since.setdefault(job, now)
            if now < self._seen[job] + SETTLE_S and now < since + allowed_s(self._sizes[job]):
                return True
            for known in (self._seen, self._since, self._sizes):
                known.pop(job, None)
            return False
