"""How long answers took: percentiles of the latest, and counts of all. Pure but for the clock, which is passed in."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

KEPT = 1000
"""Answers that percentiles are of."""
LOST_MS = 10_000.0
"""A request without an answer for this long, and for ten times its deadline, counts as lost."""


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all is not above. ``ordered``: rising, at least one."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Latencies:
    """Of one class of requests; numbers name requests, times are in ms of a clock that only goes forward."""

    def __init__(self, deadline_ms: float | None) -> None:
        self._deadline_ms = deadline_ms
        self._patience_ms = max(LOST_MS, 10 * (deadline_ms or 0.0))
        self._sent: dict[int, float] = {}  # in order
        self._last: dict[int, float] = {}  # when each was asked last
        self._latest: deque[float] = deque(maxlen=KEPT)
        self._fresh: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self.sent = self.answers = self.late = self.lost = self.repeated = 0

    @property
    def waiting(self) -> int:
        """Requests without an answer that are not lost."""
        return len(self._sent)

    def asked(self, number: int, now_ms: float) -> None:
        self.sent += 1
        self._sent[number] = self._last[number] = now_ms

    def again(self, now_ms: float, after_ms: float) -> list[int]:
        """The requests that have had no answer for so long since they were asked last; they count as asked now."""
        numbers = [number for number, at in self._last.items() if now_ms - at >= after_ms]
        self._last |= dict.fromkeys(numbers, now_ms)
        self.repeated += len(numbers)
        return numbers

    def answered(self, number: int, now_ms: float) -> None:
        """One that was lost, or answered before, counts no more."""
        begun = self._sent.pop(number, None)
        self._last.pop(number, None)
        if begun is None:
            return
        took = now_ms - begun
        self.answers += 1
        self._latest.append(took)
        self._fresh.append((round(now_ms, 2), round(took, 2)))
        self.late += self._deadline_ms is not None and took > self._deadline_ms

    def give_up(self, now_ms: float) -> None:
        """Count what has waited too long as lost."""
        while self._sent and now_ms - next(iter(self._sent.values())) > self._patience_ms:
            number = next(iter(self._sent))
            del self._sent[number], self._last[number]
            self.lost += 1

    def fresh(self) -> list[tuple[float, float]]:
        """The latest answers since this was asked last, a thousand at most: when each came, and how long it took."""
        fresh = list(self._fresh)
        self._fresh.clear()
        return fresh

    def report(self) -> dict[str, float | int]:
        """Percentiles of the latest answers, where there are any, and counts since the start."""
        ordered = sorted(self._latest)
        shares = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99} if ordered else {}
        told: dict[str, float | int] = {name: round(percentile(ordered, share), 2) for name, share in shares.items()}
        again = {"repeated": self.repeated} if self.repeated else {}
        return told | {"sent": self.sent, "answers": self.answers, "late": self.late, "lost": self.lost} | again
