"""Calls that may never return, such as those of a network disk that is away.

They are made in a thread that nobody waits for. One of the event loop's pool would be missing there for as long as the
call hangs, and the agent could not end before it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Result = TypeVar("Result")


class NoAnswer(Exception):
    """A call did not return in time, or could not be made; the text says which."""


class Aside(Generic[Result]):
    """One call at a time: while one hangs, later ones wait for its answer, and no further thread is left behind."""

    def __init__(self, function: Callable[[], Result], name: str) -> None:
        self._function, self._name = function, name
        self._answer: Future[Result] | None = None

    async def call(self, patience_s: float) -> Result:
        """Raises what the function raises, and NoAnswer."""
        if self._answer is None or self._answer.done():
            self._answer = self._begin()
        try:
            async with asyncio.timeout(patience_s):
                return await asyncio.wrap_future(self._answer)
        except TimeoutError:
            raise NoAnswer(f"no answer within {patience_s:g} s") from None

    def _begin(self) -> Future[Result]:
        answer: Future[Result] = Future()
        answer.set_running_or_notify_cancel()  # from now on nobody who stops waiting can take it back

        def run() -> None:
            try:
                result = self._function()
            except Exception as error:  # raised where the answer is awaited
                answer.set_exception(error)
            else:
                answer.set_result(result)

        try:
            threading.Thread(target=run, name=self._name, daemon=True).start()
        except RuntimeError as error:  # there are too many
            raise NoAnswer(str(error)) from error
        return answer
