"""Finished spans on their way to the manager: in the background, a few at a time, and never for long."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import structlog

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, RemoteError, backoff_s
from ces_common.messages.traces import MAX_BATCH, SpanBatch
from ces_common.tracing import DROPPED, FINISHED

log = structlog.get_logger()
SPANS: Final = subjects.rpc("manager", "spans")  # of the services; each agent has a subject of its own
GATHER_S: Final = 1.0  # how long the first of a batch waits for others: a message costs more than its spans
ANSWER_S: Final = 5.0
FLUSH_S: Final = 1.0
LONGEST_WAIT_S: Final = 10.0
TOO_OFTEN: Final = "too-often"  # the manager's word that the same spans may come later
UNAVAILABLE: Final = "unavailable"  # its database does not answer


async def ship_spans(bus: Bus, subject: str, service: str) -> None:
    """Send what has finished, until cancelled. What cannot be sent waits; a batch that is refused is dropped."""
    failures = 0
    while True:
        await FINISHED.wait()
        await asyncio.sleep(GATHER_S)
        if await _send(bus, subject, service, ANSWER_S):
            failures = 0
        else:
            failures += 1
            await asyncio.sleep(min(backoff_s(failures), LONGEST_WAIT_S))


async def flush_spans(bus: Bus, subject: str, service: str) -> None:
    """Before the process ends: send what is left, if that can be done at once."""
    with suppress(TimeoutError):
        async with asyncio.timeout(FLUSH_S):
            while len(FINISHED) and bus.connected and await _send(bus, subject, service, FLUSH_S):
                pass


async def _send(bus: Bus, subject: str, service: str, answer_s: float) -> bool:
    """False where the same spans are to be sent again later."""
    spans = FINISHED.take(MAX_BATCH)
    try:
        await bus.request(subject, SpanBatch(service=service, spans=spans).encode(), timeout_s=answer_s)
    except BusError as error:
        if isinstance(error, RemoteError) and error.code not in (TOO_OFTEN, UNAVAILABLE):
            log.warning("the manager does not take spans", error=str(error))
            DROPPED.labels("refused").inc(len(spans))
            return True
        FINISHED.put_back(spans)
        return False
    return True
