"""Calls that may never return, such as those to a network disk that is down.

They run in a daemon thread. A thread of the event loop's pool would be blocked as long as the call hangs, and the agent
could not exit before it returns.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Result = TypeVar("Result")


class NoAnswer(Exception):
    """A call did not return in time, or could not be started; the text says which."""


class BackgroundCall(Generic[Result]):
    """Runs one call at a time. While one hangs, later callers wait for its result, and no further thread is started."""

    def __init__(self, function: Callable[[], Result], name: str) -> None:
        self._function, self._name = function, name
        self._answer: Future[Result] | None = None

    async def call(self, patience_s: float) -> Result:
        """The result. Raises what the function raises, and NoAnswer."""
        if self._answer is None or self._answer.done():
            self._answer = self._begin()
        try:
            async with asyncio.timeout(patience_s):
                return await asyncio.wrap_future(self._answer)
        except TimeoutError:
            raise NoAnswer(f"no answer within {patience_s:g} s") from None

    def _begin(self) -> Future[Result]:
        answer: Future[Result] = Future()
        answer.set_running_or_notify_cancel()  # so that a caller that stops waiting cannot cancel it

        def run() -> None:
            try:
                result = self._function()
            except Exception as error:  # raised where the result is awaited
                answer.set_exception(error)
            else:
                answer.set_result(result)

        try:
            threading.Thread(target=run, name=self._name, daemon=True).start()
        except RuntimeError as error:  # too many threads
            raise NoAnswer(str(error)) from error
        return answer
