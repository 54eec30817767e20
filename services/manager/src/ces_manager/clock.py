"""The manager's clocks: the time of day, which may step, for people; a steady one for everything with consequences."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial


class Clock:
    """``wall``: the time of day. ``steady``: seconds that run on evenly, from any beginning. Tests pass in both.

    The steady one stands still while the machine sleeps: a manager that could not hear must not take that for silence.
    """

    def __init__(
        self, wall: Callable[[], datetime] = partial(datetime.now, UTC), steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall, self._steady = wall, steady
        self._start = wall() - timedelta(seconds=steady())

    def now(self) -> datetime:
        """The time of day, for what people read."""
        return self._wall()

    def steady(self) -> float:
        """Seconds, for how long something has lasted in this process."""
        return self._steady()

    def dated(self) -> datetime:
        """The time of day at the start of this process plus the steady time since, so that it never steps. For ages
        that must outlast a restart."""
        return self._start + timedelta(seconds=self._steady())
