"""Answers whoever wants to know what would be changed of a running job."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable

from ces_common.bus.port import Message, RequestHandler
from ces_common.messages.adjustments import AdjustmentAnswer, AdjustmentQuery
from ces_common.state_reader import StateReader
from ces_core.model.errors import ProblemError
from ces_scheduler.offer import Offer
from ces_scheduler.running_job import question_of, why_not
from ces_scheduler.side_process import Busy, Failed, Late, SideProcess

LIMIT_S = 20.0
"""Also on a machine that has much else to do."""
WAIT_S = 3.0
"""For the one that is under way."""
COMMAND = (sys.executable, "-m", "ces_scheduler.adjustment_process")
BUSY = AdjustmentAnswer(busy=True, refusal="another job is being looked at: try again in a moment")
LATE_AT_ALL = AdjustmentAnswer(
    refusal=f"it was not decided within {LIMIT_S:g} s: the scheduler's machine is busy, or the job's flows have too "
    "many paths between too many nodes"
)
LATE = AdjustmentAnswer(refusal=f"{LATE_AT_ALL.refusal}; without any move (`--moves 0`), it looks at far fewer")
FAILED = AdjustmentAnswer(refusal="deciding has failed: the scheduler's log says why")


def adjusting(
    reader: StateReader,
    offer: Callable[[], Offer | None],
    paths: int | None,
    command: tuple[str, ...] = COMMAND,
    limit_s: float = LIMIT_S,
    wait_s: float = WAIT_S,
) -> RequestHandler:
    """Answers an AdjustmentQuery. ``paths``: see problem_of."""
    process = SideProcess("deciding on a running job", command, limit_s, wait_s)

    def question(query: AdjustmentQuery, version: int, present: Offer | None) -> bytes | AdjustmentAnswer:
        record = None if present is None else present.records.get(query.job)
        refusal = why_not(record, present)
        if refusal is not None or record is None or present is None:
            return AdjustmentAnswer(refusal=refusal)
        try:
            return json.dumps(question_of(query, version, record, present, paths)).encode()
        except ProblemError as error:
            return AdjustmentAnswer(refusal=str(error))

    async def answer(message: Message) -> bytes:
        query = AdjustmentQuery.model_validate_json(message.data)
        try:
            async with process.turn():
                await reader.refresh()
                asked = await asyncio.to_thread(question, query, reader.view.version, offer())
                return asked.encode() if isinstance(asked, AdjustmentAnswer) else await process.answered(asked)
        except Busy:
            return BUSY.encode()
        except Late:
            return (LATE if query.moves else LATE_AT_ALL).encode()
        except Failed:
            return FAILED.encode()

    return answer
