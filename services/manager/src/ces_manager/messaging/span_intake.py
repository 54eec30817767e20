"""Intake of spans: what services and agents tell of traced attempts is kept, and handed on to whoever collects it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from ces_common import subjects
from ces_common.bus.port import Bus, Message, RemoteError
from ces_common.db import UNAVAILABLE, cause_of
from ces_common.messages.traces import AGENT, LARGEST_BATCH, MAX_BATCH, Span, SpanBatch
from ces_common.natsauth.permissions import SERVICES
from ces_common.rates import SenderRate
from ces_common.trace_shipping import SPANS, TOO_OFTEN
from ces_common.tracing import DROPPED, FINISHED
from ces_manager.database import Database
from ces_manager.jobs.spans import Told, keep_spans
from ces_manager.messaging.answers import NO_DATABASE, problem_of
from ces_manager.messaging.report_intake import IGNORED

log = structlog.get_logger()
LARGEST: Final = 256 * 1024  # bytes of a node's message
PER_S, BURST = 5.0, 20  # messages of one node
MOST_WAITING: Final = 10_000  # spans that wait to be kept
KEEP_S = 1.0  # how long the first spans wait for others to be kept with: a transaction costs more than its spans
LONGEST_ID: Final = 26  # of a job
SERVICE: Final = "manager"
Export = Callable[[Sequence[Told]], None]


class SpanIntake:
    """``export``: called with what was kept, and with what services did for many jobs at once."""

    def __init__(self, database: Database, export: Export | None) -> None:
        self._database, self._export = database, export
        if export is not None:
            database.uow.on_spans = lambda spans: export([Told(SERVICE, None, span) for span in spans])
        self._rate = SenderRate(PER_S, BURST)
        self._waiting: list[tuple[list[Told], asyncio.Future[None]]] = []
        self._came = asyncio.Event()

    async def serve(self, bus: Bus) -> None:
        await bus.serve(SPANS, self._of_service, largest=LARGEST_BATCH, queue=SERVICE)
        await bus.serve(subjects.ALL_SPANS, self._of_node, largest=LARGEST, queue=SERVICE)

    async def run(self) -> None:
        """Keep what is told, and this process's own spans, until cancelled."""
        await asyncio.gather(self._keep_repeatedly(), self._take_own())

    async def flush(self) -> None:
        """Keep this process's own last spans, if the database answers."""
        try:
            await self._keep([Told(SERVICE, None, span) for span in FINISHED.take(MOST_WAITING)])
        except UNAVAILABLE as error:
            log.info("the last spans are lost", error=cause_of(error))

    async def _of_service(self, message: Message) -> bytes:
        batch = _parsed(message)
        if batch.service not in SERVICES:
            raise _ignored(f"no service is called {batch.service}")
        await self._take([Told(batch.service, None, span) for span in batch.spans])
        return b""

    async def _of_node(self, message: Message) -> bytes:
        try:
            node = subjects.parse_spans(message.subject)
        except ValueError as error:
            raise _ignored(problem_of(error)) from error
        if not self._rate.allows(node, self._database.clock.steady()):
            raise RemoteError(TOO_OFTEN, "this node tells spans too often")
        batch = _parsed(message)
        if batch.service != AGENT:
            raise _ignored("an agent tells its own spans only")
        await self._take([Told(AGENT, node, span) for span in batch.spans])
        return b""

    async def _take(self, told: list[Told]) -> None:
        """Returns once they are kept. Raises RemoteError where too many wait, or the database does not answer."""
        if sum(len(spans) for spans, _ in self._waiting) + len(told) > MOST_WAITING:
            raise RemoteError(TOO_OFTEN, "too many spans wait to be kept")
        kept = asyncio.get_running_loop().create_future()
        self._waiting.append((told, kept))
        self._came.set()
        await kept

    async def _keep_repeatedly(self) -> None:
        while True:
            await self._came.wait()
            await asyncio.sleep(KEEP_S)
            self._came.clear()
            waiting, self._waiting = self._waiting, []
            refused: RemoteError | None = None
            try:
                await self._keep([each for told, _ in waiting for each in told])
            except UNAVAILABLE as error:
                log.info("spans wait for the database", error=cause_of(error))
                refused = RemoteError("unavailable", NO_DATABASE)
            except Exception as error:
                log.exception("spans cannot be kept")
                refused = RemoteError("internal", type(error).__name__)
            for _, kept in waiting:
                if kept.done():  # its asker is gone
                    continue
                if refused is None:
                    kept.set_result(None)
                else:
                    kept.set_exception(refused)

    async def _take_own(self) -> None:
        while True:
            await FINISHED.wait()
            await asyncio.sleep(KEEP_S)
            spans = FINISHED.take(MAX_BATCH)
            try:
                await self._take([Told(SERVICE, None, span) for span in spans])
            except RemoteError:
                FINISHED.put_back(spans)
                await asyncio.sleep(1.0)

    async def _keep(self, told: list[Told]) -> None:
        of_jobs = [each for each in told if each.span.job is not None]
        kept: list[Told] = []
        if of_jobs:
            now = self._database.clock.now()

            def keep() -> list[Told]:
                with self._database.uow.bare_write() as session:
                    return keep_spans(session, of_jobs, now)

            kept = await asyncio.to_thread(keep)
            if len(kept) < len(of_jobs):
                DROPPED.labels("not of a traced attempt").inc(len(of_jobs) - len(kept))
        if self._export is not None:
            of_many = [each for each in told if each.span.job is None and each.node is None]
            self._export([*kept, *of_many])


def _parsed(message: Message) -> SpanBatch:
    """Raises RemoteError."""
    try:
        batch = SpanBatch.model_validate_json(message.data)
    except ValueError as error:
        raise _ignored(problem_of(error)) from error
    if any(_no_job(span) for span in batch.spans):
        raise _ignored("a job's id has 26 letters and digits")
    return batch


def _no_job(span: Span) -> bool:
    return span.job is not None and not (len(span.job) <= LONGEST_ID and span.job.isalnum())


def _ignored(why: str) -> RemoteError:
    IGNORED.labels("spans").inc()
    return RemoteError("malformed", why)
