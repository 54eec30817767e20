"""Answers whoever wants an application's graph divided."""

from __future__ import annotations

import sys

from ces_common.bus.port import Message, RequestHandler
from ces_common.messages.decompositions import DecompositionAnswer
from ces_scheduler.side_process import Busy, Failed, Late, SideProcess

LIMIT_S = 20.0
"""Also on a machine that has much else to do."""
WAIT_S = 3.0
"""For the one that is under way."""
COMMAND = (sys.executable, "-m", "ces_scheduler.decomposition_process")
BUSY = DecompositionAnswer(busy=True, refusal="other graphs are being divided: try again in a moment")
LATE = DecompositionAnswer(
    refusal=f"it was not divided within {LIMIT_S:g} s: give a smaller graph, or use `ces decompose`", field="graph"
)
FAILED = DecompositionAnswer(refusal="dividing has failed: the scheduler's log says why")


def dividing(command: tuple[str, ...] = COMMAND, limit_s: float = LIMIT_S, wait_s: float = WAIT_S) -> RequestHandler:
    """Answers a DecompositionQuery, which whoever asks has checked."""
    process = SideProcess("dividing a graph", command, limit_s, wait_s)

    async def answer(message: Message) -> bytes:
        try:
            return await process.ask(message.data)
        except Busy:
            return BUSY.encode()
        except Late:
            return LATE.encode()
        except Failed:
            return FAILED.encode()

    return answer
