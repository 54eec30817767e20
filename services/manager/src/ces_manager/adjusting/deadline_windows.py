"""Whether answers came in time, window by window, from the counts that an application's senders tell. Pure; what they
tell is their own word, and calls for nothing but a look at their own application."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

WINDOW_S: Final = 10.0
LATE_SHARE: Final = 0.05
"""Of a window's answers: with more, its 95th percentile misses the deadline."""
MISSED_RUNNING: Final = 3
"""Windows in a row that call for a look."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one class of requests, since its sender began. ``late``: answers after the deadline, and requests without any
    answer."""

    answers: int
    late: int


def counts_of(progress: Mapping[str, Any] | None) -> dict[str, Counts]:
    """By class of requests; what cannot be read is left out."""
    requests = progress.get("requests") if progress is not None else None
    if not isinstance(requests, Mapping):
        return {}
    found = {}
    for name, told in requests.items():
        if isinstance(name, str) and isinstance(told, Mapping):
            answers, late, lost = (_count(told.get(field, 0)) for field in ("answers", "late", "lost"))
            if answers is not None and late is not None and lost is not None:
                found[name] = Counts(answers + lost, late + lost)
    return found


def _count(value: object) -> int | None:
    """None for what counts nothing."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        return None
    return value


class DeadlineWindows:
    """Of one application."""

    def __init__(self) -> None:
        self._at = -math.inf
        self._base: Mapping[str, Counts] = {}
        self._missed: dict[str, int] = {}

    def look(self, counts: Mapping[str, Counts], now: float) -> list[str]:
        """The classes of requests that have now missed their deadline in MISSED_RUNNING windows in a row; each begins
        anew then. A longer time between two calls is one window; ``now``: of a steady clock."""
        if now - self._at < WINDOW_S:
            return []
        found = []
        for name, count in counts.items():
            missed = _missed(self._base.get(name), count)
            if missed is not None:
                self._missed[name] = self._missed.get(name, 0) + 1 if missed else 0
            if self._missed.get(name, 0) >= MISSED_RUNNING:
                found.append(name)
                self._missed[name] = 0
        for name in self._missed.keys() - counts.keys():
            del self._missed[name]
        self._at, self._base = now, dict(counts)
        return found


def _missed(before: Counts | None, now: Counts) -> bool | None:
    """None where the window says nothing: no answer was due in it, or the sender has begun anew."""
    if before is None or now.answers <= before.answers or now.late < before.late:
        return None
    return now.late - before.late > LATE_SHARE * (now.answers - before.answers)
