"""How long this manager was able to hear nodes: what it missed itself is no silence of theirs. Pure."""

from __future__ import annotations

LONGEST_GAP_S = 1.0  # between two looks at the clock; of a longer one, the rest was a stall


class HearingClock:
    """Runs while heartbeats can arrive and be written down; stands still while they cannot, and while this process is
    held up, when nothing looks at it. Never faster than a steady clock, so that whatever it decides comes late rather
    than early."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._last: float | None = None  # when it was last looked at, if heartbeats arrived then

    def look(self, now: float, hears: bool) -> None:
        """``now``: on a steady clock. ``hears``: whether a heartbeat that arrives would be written down in time."""
        if hears and self._last is not None:
            self._seconds += min(now - self._last, LONGEST_GAP_S)
        self._last = now if hears else None

    def seconds(self) -> float:
        return self._seconds
