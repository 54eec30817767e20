"""What running as a service means: signals, a group of loops that live and die together, crash on the unforeseen."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import structlog

from ces_common.telemetry import configure_logging

log = structlog.get_logger()


class Hint:
    """Something may have changed. Any number of calls before the next wait count once."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, timeout_s: float) -> bool:
        """Returns at the next hint (True) or after the timeout (False). No hint is lost, not even one that comes
        together with the timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        heard = self._event.is_set()
        self._event.clear()
        return heard


async def run_loops(stop: asyncio.Event, *loops: Coroutine[Any, Any, None]) -> None:
    """Run until ``stop`` is set or one loop ends; a loop's exception ends the others and is raised."""
    tasks = [asyncio.create_task(loop) for loop in loops]
    stopper = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait([*tasks, stopper], return_when=asyncio.FIRST_COMPLETED)
        for task in done - {stopper}:
            task.result()
    finally:
        for task in (*tasks, stopper):
            task.cancel()
        await asyncio.gather(*tasks, stopper, return_exceptions=True)


def run_service(name: str, level: str, main: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run a service until SIGTERM or SIGINT; ``main`` gets the event that asks it to stop."""
    configure_logging(name, level)

    async def body() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        log.info("starting")
        await main(stop)
        log.info("stopped")

    asyncio.run(body())
