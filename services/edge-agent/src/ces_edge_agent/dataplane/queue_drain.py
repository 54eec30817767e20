"""Letting a queue drain before its class is lowered.

Packets that wait when a class is lowered leave at the new rate. If that is a fraction of the old one, they take half a
second, and packets that arrive meanwhile find the queue full. So the queue is shortened first, and its class lowered
once it holds no more than that, which is soon: it held 50 ms of the old rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from ces_edge_agent.dataplane.meters import ClassCounters
from ces_edge_agent.dataplane.plan.objects import Queue
from ces_edge_agent.dataplane.plan.shaping import QUEUE_S
from ces_edge_agent.ports import DataPlaneError

SAMPLE_S = 0.005
# After the first queue was shortened; the queue of a class that borrowed may take longer, and is not waited for.
LONGEST_S = QUEUE_S + 2 * SAMPLE_S


class QueueDrain:
    """``read``: device -> its class counters by minor; may raise DataPlaneError. ``clock`` never goes back."""

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
        """To be called when a queue was shortened."""
        self._limits[queue.device, queue.minor] = queue.limit
        if self._until is None:
            self._until = self._clock() + LONGEST_S

    def wait(self, device: str, minor: int) -> None:
        """Wait until a class's queue fits its new limit, or the time for that is up. Blocking."""
        limit = self._limits.get((device, minor))
        while limit is not None and self._until is not None and self._clock() < self._until:
            try:
                counters = self._read(device).get(minor)
            except DataPlaneError:
                return
            if counters is None or counters.waiting <= limit:
                return
            self._pause(SAMPLE_S)
