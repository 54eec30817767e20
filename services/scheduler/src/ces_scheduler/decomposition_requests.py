"""Answers whoever wants an application's graph divided: one at a time, in a process of its own, within a limit."""

from __future__ import annotations

import asyncio
import sys

import structlog

from ces_common.bus.port import Message, RequestHandler
from ces_common.messages.decompositions import DecompositionAnswer

log = structlog.get_logger()
LIMIT_S = 20.0
"""Also on a machine that has much else to do."""
COMMAND = (sys.executable, "-m", "ces_scheduler.decomposition")
BUSY = DecompositionAnswer(refusal="another graph is being divided: try again in a moment", field="time")
LATE = DecompositionAnswer(refusal=f"not divided within {LIMIT_S:g} s: give fewer vertices or parts", field="time")
FAILED = DecompositionAnswer(refusal="dividing has failed: the scheduler's log says why")


def dividing(command: tuple[str, ...] = COMMAND, limit_s: float = LIMIT_S) -> RequestHandler:
    """Answers a DecompositionQuery, which whoever asks has checked."""
    at_work = asyncio.Lock()

    async def answer(message: Message) -> bytes:
        if at_work.locked():
            return BUSY.encode()
        async with at_work:
            return await _divided(command, message.data, limit_s)

    return answer


async def _divided(command: tuple[str, ...], request: bytes, limit_s: float) -> bytes:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
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
        log.error("a graph was not divided", status=process.returncode, said=said.decode(errors="replace")[-2000:])
        return FAILED.encode()
    return answer
