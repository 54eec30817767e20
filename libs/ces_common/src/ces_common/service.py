"""What running as a service means: signals, loops that live and die together, a crash on any unforeseen error."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import structlog
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ces_common.field_errors import plain_problem
from ces_common.logs import configure_logging
from ces_common.settings import ServiceSettings

log = structlog.get_logger()
COLLECT_AFTER = 20_000  # objects that may be garbage; Python's default is 700
S = TypeVar("S", bound=ServiceSettings)


class Hint:
    """Says that something may have changed. Any number of calls before the next wait count as one."""

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


class BadSetup(Exception):
    """What the operator set up cannot work; the text names the setting and the remedy."""


def run_service(name: str, settings_type: type[S], main: Callable[[S, asyncio.Event], Awaitable[None]]) -> None:
    """Run a service until SIGTERM or SIGINT; ``main`` gets its settings and the event that asks it to stop. Exit
    status 2 with a plain text where a setting is wrong or BadSetup was raised. With ``--settings`` on the command line
    it only prints which settings it reads and which of them are wrong."""
    if sys.argv[1:] == ["--settings"]:
        print(json.dumps(describe_settings(settings_type)))
        return
    try:
        settings = settings_type()
        configure_logging(name, settings.log_level)
        collect_seldom()
        asyncio.run(_until_told(settings, main))
    except ValidationError as error:
        for wrong in _faults(error):
            print(_complaint(wrong), file=sys.stderr)
        raise SystemExit(2) from None
    except BadSetup as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None


def collect_seldom() -> None:
    """Look for garbage in cycles less often than Python does unasked. What services hold, mostly records, lives long
    and forms no cycles: looking through it took a fifth of a busy service's time, and longer than parsing a large
    snapshot."""
    gc.freeze()  # what was imported stays
    gc.set_threshold(COLLECT_AFTER)
    gc.enable()  # services turn it off while they import


async def _until_told(settings: S, main: Callable[[S, asyncio.Event], Awaitable[None]]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    log.info("starting")
    await main(settings, stop)
    log.info("stopped")


def describe_settings(settings_type: type[ServiceSettings]) -> dict[str, list[str]]:
    """The variables that a service reads (``settings``), and what is wrong with the given ones (``wrong``)."""
    wrong: list[str] = []
    try:
        settings_type()
    except ValidationError as error:
        wrong = [_complaint(each) for each in _faults(error) if each["type"] != "missing"]
    return {"settings": sorted(f"CES_{name.upper()}" for name in settings_type.model_fields), "wrong": wrong}


def _faults(error: ValidationError) -> list[ErrorDetails]:
    """Without defaults that could not be worked out since another setting is wrong, or missing."""
    return [each for each in error.errors() if each["type"] != "default_factory_not_called"]


def _complaint(wrong: ErrorDetails) -> str:
    return _setting(wrong["loc"]) + plain_problem(wrong)


def _setting(location: tuple[int | str, ...]) -> str:
    """The environment variable behind a field, as the beginning of a sentence."""
    return f"CES_{'_'.join(map(str, location)).upper()}: " if location else ""
