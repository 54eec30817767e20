"""An event loop whose time passes when told to. Calls that would go to a thread run at once, in this one: the same
steps have the same outcome each time."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Any

AT_LEAST_S = 1e-6  # that time moves on from timer to timer


class _NoSockets:
    """What the loop asks for input and output, of which there is none."""

    def select(self, timeout: float | None) -> list[Any]:
        return []


class SteppedLoop(asyncio.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._selector = _NoSockets()
        self._now, self._called = 0.0, 0
        self._timers: list[float] = []  # when something may be due; some of it was cancelled

    def time(self) -> float:
        return self._now

    def settle(self) -> None:
        """Run whatever is due at this instant, and whatever follows from it."""
        while True:
            before = self._called
            self.call_soon(self.stop)
            self.run_forever()
            if self._called == before + 1:
                return

    def leap(self, seconds: float) -> None:
        """Let time pass during which nothing runs, as if every process were held up."""
        self._now += seconds

    def flow(self, seconds: float) -> None:
        """Let time pass, with everything at its time."""
        until = self._now + seconds
        self.settle()
        while self._timers and self._timers[0] <= until:
            self._now = max(self._now, heapq.heappop(self._timers)) + AT_LEAST_S
            self.settle()
        self._now = max(self._now, until)

    # What asyncio asks of a loop

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:
        self._called += 1
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        heapq.heappush(self._timers, when)
        return super().call_at(when, callback, *args, context=context)

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
