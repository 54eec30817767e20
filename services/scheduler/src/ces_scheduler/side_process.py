"""Answers to questions that take long: one at a time, in a process of its own, within a limit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

log = structlog.get_logger()
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # each more reserves memory


class Busy(Exception):
    """Another question is being answered."""


class Late(Exception):
    """It was not answered within the limit."""


class Failed(Exception):
    """The process has failed; the log says why."""


class SideProcess:
    """``command`` reads a question from standard input and writes its answer to standard output. ``limit_s``: for one;
    ``wait_s``: for the one that is under way."""

    def __init__(self, what: str, command: tuple[str, ...], limit_s: float, wait_s: float) -> None:
        self._what, self._command, self._limit_s, self._wait_s = what, command, limit_s, wait_s
        self._at_work = asyncio.Lock()

    async def ask(self, question: bytes) -> bytes:
        """Raises Busy, Late, Failed."""
        async with self.turn():
            return await self.answered(question)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Nobody else asks meanwhile: for questions that cost something to put as well. Raises Busy."""
        try:
            async with asyncio.timeout(self._wait_s):
                await self._at_work.acquire()
        except TimeoutError:
            raise Busy from None
        try:
            yield
        finally:
            self._at_work.release()

    async def answered(self, question: bytes) -> bytes:
        """Within a turn. Raises Late, Failed."""
        pipe, environment = asyncio.subprocess.PIPE, os.environ | ONE_THREAD
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )
        try:
            async with asyncio.timeout(self._limit_s):
                answer, said = await process.communicate(question)
        except TimeoutError:
            raise Late from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            last = said.decode(errors="replace").strip().splitlines()[-1:]
            log.error(f"{self._what} has failed", status=process.returncode, said="".join(last)[:500])
            raise Failed
        return answer
