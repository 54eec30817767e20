"""The process that measures, as the agent runs it: for so long at most, and only while the node is free."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import structlog

from ces_common.messages.scores import MAX_MEASURED, Measurement
from ces_edge_agent.scores.plan import LIMIT_S

log = structlog.get_logger()
LOOK_S: Final = 0.25
"""How soon it ends after the node is needed."""
_LONGEST: Final = 4096  # bytes of a line
_KEPT: Final = ("PATH", "PYTHONPATH", "LANG", "HOME")
"""What it is told of the agent's environment, in which secrets may stand."""


class Interrupted(Exception):
    """Nothing was measured: the node was needed for something else, say. The text says why."""


def command(folder: Path) -> tuple[str, ...]:
    return sys.executable, "-m", "ces_edge_agent.scores", str(folder)


class MeasuringProcess:
    """``pid``: while it runs; None otherwise."""

    def __init__(self, arguments: Sequence[str], limit_s: float = LIMIT_S) -> None:
        self._arguments, self._limit_s = arguments, limit_s
        self.pid: int | None = None

    async def measure(self, busy: Callable[[], str | None]) -> list[Measurement]:
        """``busy``: for what the node is needed; None while it is for nothing. What was found within the limit. Raises
        Interrupted, OSError."""
        process = await asyncio.create_subprocess_exec(
            *self._arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            limit=_LONGEST,
            cwd="/",
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
            start_new_session=True,
        )
        self.pid = process.pid
        assert process.stdout is not None
        found: list[Measurement] = []
        reading = asyncio.create_task(_read(process.stdout, found))
        try:
            async with asyncio.timeout(self._limit_s):
                while not reading.done():
                    if (why := busy()) is not None:
                        raise Interrupted(why)
                    await asyncio.wait([reading], timeout=LOOK_S)
        except TimeoutError:
            log.info("measuring has taken all of its time", found=len(found))
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            reading.cancel()
            await asyncio.gather(process.wait(), reading, return_exceptions=True)
            self.pid = None
        if not found:
            raise Interrupted("nothing could be measured in time")
        return found


async def _read(stream: asyncio.StreamReader, found: list[Measurement]) -> None:
    """Until it ends. What is no measurement ends it, too."""
    with contextlib.suppress(ValueError):
        while len(found) < MAX_MEASURED and (line := await stream.readline()):
            found.append(Measurement.model_validate_json(line))
