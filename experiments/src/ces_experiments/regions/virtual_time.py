"""An event loop whose clock leaps to the next timer: the services' own coroutines run through hours in moments, and the
same run always in the same order."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Leaping(selectors.SelectSelector):
    """Nothing outside is waited for, so that waiting is over at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everything waits, and nothing is to come")
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """``time()``: seconds since the run began. An error in a callback ends the run."""

    def __init__(self) -> None:
        self._leaping = _Leaping()
        super().__init__(self._leaping)
        self.failed: BaseException | None = None
        self.set_exception_handler(self._fail)

    def time(self) -> float:
        return self._leaping.now

    def _fail(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failed = self.failed or context.get("exception") or RuntimeError(context["message"])
        self.stop()


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Raises what the coroutine or any callback raises."""
    loop = VirtualLoop()
    try:
        task = loop.create_task(main)
        try:
            return loop.run_until_complete(task)
        except RuntimeError:
            if loop.failed is not None:
                task.cancel()
                raise loop.failed from None
            raise
    finally:
        loop.close()
