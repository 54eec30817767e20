"""When a node says again what it has reported. Pure."""

from __future__ import annotations

import math

LONGEST_S = 15.0


class Repetition:
    """A report may be lost, so it is repeated: soon after a change, when a loss would cost most, and then each time
    after twice as long, up to ``LONGEST_S`` or an interval. ``interval_s``: between two heartbeats."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s, self._longest_s = interval_s, max(LONGEST_S, interval_s)
        self._said: tuple[object, ...] = ()
        self._wait_s, self._due = interval_s, -math.inf

    def restart(self) -> None:
        """What was said may have been lost: it is due, however often it was said."""
        self._said = ()

    def due(self, now: float, *saying: object) -> bool:
        """Whether to say this now, on a steady clock; then it counts as said."""
        if saying != self._said:
            self._said, self._wait_s = saying, self._interval_s
        elif now < self._due:
            return False
        else:
            self._wait_s = min(2 * self._wait_s, self._longest_s)
        self._due = now + self._wait_s
        return True

    def left_s(self, now: float) -> float:
        """Until what was said is due again, if it does not change."""
        return max(0.0, self._due - now)
