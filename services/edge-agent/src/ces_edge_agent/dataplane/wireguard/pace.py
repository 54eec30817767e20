"""How often a node looks after its WireGuard device. Pure.

While a neighbour goes over to another key, its packets are dropped until the next look. But a neighbour says by itself
that it does, so each is believed for a part of every period alone.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

LOOK_S: Final = 1.0
ROTATION_LOOK_S: Final = 0.1
BELIEVED_S: Final = 360.0  # its first try is over by then: see SETTLE_S, WAIT_S and TRIAL_S of keys
PERIOD_S: Final = 3600.0


class Pace:
    """Remembers since when each neighbour tells two keys. All times are by the time of day."""

    def __init__(self) -> None:
        self._begun: dict[str, float] = {}  # neighbour -> when it was first believed in this period

    def believed(self, now: float, going_over: Collection[str]) -> frozenset[str]:
        """Those who go over to another key, as far as they are believed. ``going_over``: who tell two keys."""
        self._begun = {name: at for name, at in self._begun.items() if 0 <= now - at < PERIOD_S}
        for name in going_over:
            self._begun.setdefault(name, now)
        return frozenset(name for name in going_over if now - self._begun[name] < BELIEVED_S)
