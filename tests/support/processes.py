"""Processes that are groups of tasks on one loop, and that can be killed between any two steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any

PROCESS: ContextVar[str] = ContextVar("process", default="")
NOBODY = Context()  # what belongs to no process, such as the broker


class Killed(BaseException):
    """This process ends here."""


class Processes:
    """Every task belongs to the process in whose context it was made, or to the one without a name. ``failed`` is told
    of what ended a process that nobody killed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, failed: Callable[[str], None]) -> None:
        self._loop, self._failed = loop, failed
        self._tasks: dict[str, dict[asyncio.Task[Any], None]] = {}  # in the order in which they were made
        make: Any = self._make
        loop.set_task_factory(make)

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and not isinstance(task.exception(), Killed):
                self._failed(f"{name} has ended: {task.exception()!r}")

        self.within(name, work).add_done_callback(ended)

    def within(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have a process do something besides."""
        context = Context()
        context.run(PROCESS.set, name)
        return self._loop.create_task(work, context=context)

    def kill(self, name: str) -> None:
        for task in self._tasks.pop(name, {}):
            task.cancel()

    def _make(self, loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=loop, **more)
        context = more.get("context")
        name = PROCESS.get() if context is None else context.get(PROCESS, "")
        mine = self._tasks.setdefault(name, {})
        mine[task] = None
        task.add_done_callback(lambda ended: mine.pop(ended, None))
        return task
