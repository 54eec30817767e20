"""Letting queues run down before their classes are lowered.

What waits behind a class leaves it at the new rate. Where that is a fraction of the old one, it takes half a second,
goes out in bursts as large as the old rate allowed, and all that comes meanwhile finds the queue full. So the queue is
shortened first, and its class lowered once it holds no more than that: it held 50 ms of the old rate, so that is soon.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.meter import ClassCounters
from ces_edge_agent.dataplane.objects import Queue
from ces_edge_agent.dataplane.shaping import QUEUE_S

LOOK_EVERY_S = 0.005
LONGEST_S = (
    QUEUE_S + 2 * LOOK_EVERY_S
)  # since the first queue was shortened; that of a class that borrowed may take longer


class Draining:
    """``read``: what a device's classes count, by their minors; may raise DataPlaneError. ``clock`` never goes back."""

    def __init__(
        self,
        read: Callable[[str], Mapping[int, ClassCounters]],
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._read, self._clock, self._pause = read, clock, pause
        self._limits: dict[tuple[str, int], int] = {}
        self._until: float | None = None

    def shortened(self, queue: Queue) -> None:
        self._limits[queue.device, queue.minor] = queue.limit
        if self._until is None:
            self._until = self._clock() + LONGEST_S

    def wait(self, device: str, minor: int) -> None:
        """Until a class's queue holds no more than it may now, or it has had the time for it. Blocking."""
        limit = self._limits.get((device, minor))
        while limit is not None and self._until is not None and self._clock() < self._until:
            try:
                counters = self._read(device).get(minor)
            except DataPlaneError:
                return
            if counters is None or counters.waiting <= limit:
                return
            self._pause(LOOK_EVERY_S)
