"""Answers whoever wants an application's graph divided: one at a time, in a process of its own, within a limit."""

from __future__ import annotations

import asyncio
import os
import sys

import structlog

from ces_common.bus.port import Message, RequestHandler
from ces_common.messages.decompositions import DecompositionAnswer

log = structlog.get_logger()
LIMIT_S = 20.0
"""Also on a machine that has much else to do."""
WAIT_S = 3.0
"""For the one that is under way."""
COMMAND = (sys.executable, "-m", "ces_scheduler.decomposition_process")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # each more reserves memory
BUSY = DecompositionAnswer(busy=True, refusal="other graphs are being divided: try again in a moment")
LATE = DecompositionAnswer(
    refusal=f"it was not divided within {LIMIT_S:g} s: give a smaller graph, or use `ces decompose`", field="graph"
)
FAILED = DecompositionAnswer(refusal="dividing has failed: the scheduler's log says why")


def dividing(command: tuple[str, ...] = COMMAND, limit_s: float = LIMIT_S, wait_s: float = WAIT_S) -> RequestHandler:
    """Answers a DecompositionQuery, which whoever asks has checked."""
    at_work = asyncio.Lock()

    async def answer(message: Message) -> bytes:
        try:
            async with asyncio.timeout(wait_s):
                await at_work.acquire()
        except TimeoutError:
            return BUSY.encode()
        try:
            return await _divided(command, message.data, limit_s)
        finally:
            at_work.release()

    return answer


async def _divided(command: tuple[str, ...], request: bytes, limit_s: float) -> bytes:
    pipe, environment = asyncio.subprocess.PIPE, os.environ | ONE_THREAD
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
    try:
        async with asyncio.timeout(limit_s):
            answer, said = await process.communicate(request)
    except TimeoutError:
        return LATE.encode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        last = said.decode(errors="replace").strip().splitlines()[-1:]
        log.error("a graph was not divided", status=process.returncode, said="".join(last)[:500])
        return FAILED.encode()
    return answer
