"""An event loop whose time passes when told to. Calls that would go to a thread run at once, in this one: the same
steps have the same outcome each time."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from math import inf
from typing import Any

AT_LEAST_S = 1e-6  # that time moves on from timer to timer
MOST_ROUNDS = 100_000  # at one instant; a few hundred are many


class _NoSockets:
    """What the loop asks for input and output, of which there is none."""

    def select(self, timeout: float | None) -> list[Any]:
        return []


class SteppedLoop(asyncio.BaseEventLoop):
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]  # a heap

    def __init__(self) -> None:
        super().__init__()
        self._selector = _NoSockets()
        self._clock_resolution = 0.0  # else what is due within a nanosecond would run again and again, in no time
        self._now, self._rounds = 0.0, 0

    def time(self) -> float:
        return self._now

    def settle(self) -> None:
        """Run whatever is due at this instant, and whatever follows from it."""
        self._rounds = 0
        self.call_soon(self._go_on)
        self.run_forever()

    def _go_on(self) -> None:
        self._rounds += 1
        if self._ready and self._rounds < MOST_ROUNDS:
            self.call_soon(self._go_on)
            return
        if self._ready:
            self.call_exception_handler({"message": "it never comes to rest", "handle": self._ready[0]})
        self.stop()

    def leap(self, seconds: float) -> None:
        """Let time pass during which nothing runs, as if every process were held up."""
        self._now += seconds

    def flow(self, seconds: float) -> None:
        """Let time pass, with everything at its time."""
        until = self._now + seconds
        self.settle()
        while (due := self._next_timer()) <= until:
            self._now = max(self._now, due) + AT_LEAST_S
            self.settle()
        self._now = max(self._now, until)

    def _next_timer(self) -> float:
        while self._scheduled and self._scheduled[0].cancelled():
            heapq.heappop(self._scheduled)
        return self._scheduled[0].when() if self._scheduled else inf

    # What asyncio asks of a loop

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)  # without the checks of loops that have threads
        self._ready.append(handle)
        return handle

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future = self.create_future()
        try:
            result = func(*args)
        except Exception as error:
            self.call_soon(self._finish, future.set_exception, error)
        else:
            self.call_soon(self._finish, future.set_result, result)
        return future

    @staticmethod
    def _finish(finish: Callable[[Any], None], outcome: Any) -> None:
        with suppress(asyncio.InvalidStateError):  # cancelled meanwhile
            finish(outcome)

    def _process_events(self, event_list: list[Any]) -> None:
        return None
