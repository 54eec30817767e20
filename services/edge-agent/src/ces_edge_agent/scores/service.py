"""When the node is measured: once for each boot, version of the agent and kind of machine, and when somebody asks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Protocol

import structlog

from ces_common.bus.port import Message, RemoteError
from ces_common.messages.scores import Measurement, ScoreReport
from ces_edge_agent.files import write_atomically
from ces_edge_agent.scores.machine import hardware
from ces_edge_agent.scores.process import Interrupted, MeasuringProcess, command

log = structlog.get_logger()
OFF: Final = "measuring is off there (CES_MEASURE=false)"
UNDER_WAY: Final = "it measures already"
EDITION: Final = 2
"""Of the work that is measured: another one is measured anew."""
LOOK_S: Final = 1.0
"""How often it is looked whether the node is free."""
AGAIN_S: Final = 60.0
"""After which measuring is tried again that was interrupted, or failed; twice as long each time."""
LONGEST_S: Final = 3600.0  # but no longer


class Measuring(Protocol):
    """What measures."""

    @property
    def pid(self) -> int | None: ...

    def measure(self, busy: Callable[[], str | None]) -> Awaitable[list[Measurement]]: ...


class Scores:
    """``report``: what is told to the manager; None while nothing is known. ``key``: what was measured counts as long
    as it stays. ``busy``: why the node cannot be measured now; None where it can. ``changed``: called with each new
    report."""

    def __init__(
        self,
        node: str,
        on: bool,
        file: Path,
        key: str,
        measuring: Measuring,
        busy: Callable[[], str | None],
        changed: Callable[[], None],
    ) -> None:
        self._node, self._on, self._file, self._key = node, on, file, key
        self._measuring, self._busy, self._changed = measuring, busy, changed
        self._wanted = asyncio.Event()
        self.report = self._load() if on else None
        if self.report is None:
            self._wanted.set()

    @property
    def pids(self) -> list[int]:
        """The process that measures, which is CES's own, while it runs."""
        return [] if self._measuring.pid is None else [self._measuring.pid]

    async def run(self) -> None:
        failures = 0
        while self._on:
            await self._wanted.wait()
            while self._busy() is not None:  # noqa: ASYNC110
                await asyncio.sleep(LOOK_S)
            try:
                found = await self._measuring.measure(self._busy)
            except (Interrupted, OSError) as error:
                log.info("measuring was interrupted, and is tried again later", why=str(error))
                await self._pause(min(AGAIN_S * 2 ** min(failures, 10), LONGEST_S))
                failures += 1
                continue
            failures = 0
            self._wanted.clear()
            self._take(found)

    async def _pause(self, wait_s: float) -> None:
        """Until the next try, which comes at once where somebody asks for it."""
        self._wanted.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._wanted.wait()
        self._wanted.set()

    async def answer(self, _: Message) -> bytes:
        """To whoever asks for it. Raises RemoteError where it cannot be done now."""
        why = OFF if not self._on else UNDER_WAY if self.pids else self._busy()
        if why is not None:
            raise RemoteError("not-measured", why)
        self._wanted.set()
        return b""

    def _take(self, found: list[Measurement]) -> None:
        self.report = ScoreReport(node=self._node, measurements=found)
        kept = {"key": self._key, "report": self.report.model_dump(mode="json")}
        try:
            write_atomically(self._file, json.dumps(kept))
        except OSError as error:
            log.warning("what was measured is not kept: it is measured again at the next start", error=str(error))
        log.info("measured", kinds=sorted({each.kind for each in found}))
        self._changed()

    def _load(self) -> ScoreReport | None:
        try:
            kept = json.loads(self._file.read_text())
            report = ScoreReport.model_validate(kept["report"]) if kept["key"] == self._key else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("what was measured before cannot be read", error=str(error))
            return None
        return report if report is not None and report.node == self._node else None


def make(
    node: str, on: bool, state_dir: Path, boot: str, busy: Callable[[], str | None], changed: Callable[[], None]
) -> Scores:
    """``boot``: names the present boot of the machine."""
    key = json.dumps([boot, _version(), EDITION, hardware()]) if on else ""
    return Scores(node, on, state_dir / "scores.json", key, MeasuringProcess(command(state_dir)), busy, changed)


def _version() -> str:
    try:
        return version("ces-edge-agent")
    except PackageNotFoundError:
        return ""
