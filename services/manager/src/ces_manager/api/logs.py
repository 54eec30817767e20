"""Workers' logs: read from the agents that keep them, while the client reads on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from ces_common import subjects
from ces_common.bus.port import LARGEST_REQUEST, BusError, RemoteError
from ces_common.messages.agent_queries import LogAnswer, LogQuery
from ces_common.messages.api import TaskView
from ces_common.messages.base import Message
from ces_common.messages.regions import AwayLogQuery, Decision
from ces_common.messages.split import PartState
from ces_common.states import JOB_OVER
from ces_manager.api.context import Context
from ces_manager.jobs import job_views
from ces_manager.regions.away import remote_run
from ces_manager.regions.splits import parts_of, run_of

LOOK_S = 0.5
TIMEOUT_S = 5.0
LONGEST_LINE = 2**20  # characters that wait for the line's end
ENDED = "(the log goes on: the access token that it was asked for with is good no more)\n"


Ask = Callable[[int, int | None], Awaitable[LogAnswer]]
"""Reads a log from an offset on, or its last lines. Raises BusError."""


class _Tail:
    """One task's log, in whole lines but for very long ones; an unfinished last line comes at the end. ``place``: where
    it is kept."""

    def __init__(self, ask: Ask, task: str, place: str, prefix: bool, tail: int | None) -> None:
        self._ask, self._place = ask, place
        self._last = tail  # lines that the first query asks for; None: all
        self._prefix = f"{task} | " if prefix else ""
        self._offset, self._rest = 0, ""
        self.complete = False
        self._said: str | None = None  # why it cannot be had

    async def read(self, goes_on: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
        """Everything new while it ``goes_on``, piece by piece, since it may be too much to hold at once. A log that
        cannot be read now is mentioned once."""
        while await goes_on():
            try:
                answer = await self._ask(self._offset, self._last)
            except BusError as error:
                self.complete = True
                if self._said is None:
                    self._said = f"{self._prefix}(the log {self._place} cannot be read: {error})\n"
                    yield self._said
                return
            self._said = None
            yield self._lines(answer.text)
            self._offset, self._last = answer.offset if answer.found else self._offset, None
            if answer.complete:
                self.complete = True
                yield self._lines("\n" if self._rest else "")
            if not answer.text:
                return

    def _lines(self, text: str) -> str:
        whole, newline, self._rest = (self._rest + text).rpartition("\n")
        if not newline:
            if len(self._rest) <= LONGEST_LINE:
                return ""
            whole, self._rest = self._rest, ""  # an agent may never end a line, and all of it would be held
        return "".join(f"{self._prefix}{line}\n" for line in whole.split("\n"))


def _from_agent(context: Context, task: TaskView, prefix: bool, tail: int | None) -> _Tail:
    async def ask(offset: int, last: int | None) -> LogAnswer:
        assert task.node is not None
        assert task.allocation is not None
        query = LogQuery(allocation=task.allocation, offset=offset, tail=last)
        return await _asked(context, subjects.agent_rpc(task.node, "logs"), query, "the node")

    return _Tail(ask, task.name, f"on node {task.node}", prefix, tail)


def _from_region(context: Context, run: Decision, task: str, prefix: bool, tail: int | None) -> _Tail:
    async def ask(offset: int, last: int | None) -> LogAnswer:
        query = AwayLogQuery(**run.model_dump(), task=task, offset=offset, tail=last)
        return await _asked(context, subjects.rpc("federation", "logs"), query, f"region {run.region}")

    return _Tail(ask, task, f"in region {run.region}", prefix, tail)


async def _add_part(
    context: Context, part: PartState, task: str | None, tail: int | None, logs: dict[str, _Tail]
) -> None:
    """The logs of a part of a split job, those of this region from its own agents."""
    names = [name for name in part.tasks if task in (None, name)]
    if part.region != context.region:
        for name in names:
            logs.setdefault(f"{part.remote} {name}", _from_region(context, run_of(part), name, task is None, tail))
        return
    view = await context.database.read(lambda tx: job_views.job_view(tx, part.remote, context.measurements))
    for each in view.placement:
        if each.allocation and each.node and each.name in names:
            logs.setdefault(each.allocation, _from_agent(context, each, task is None, tail))


async def _asked(context: Context, subject: str, query: Message, who: str) -> LogAnswer:
    raw = await context.bus.request(subject, query.encode(), timeout_s=TIMEOUT_S, largest=LARGEST_REQUEST)
    try:
        return LogAnswer.model_validate_json(raw)
    except ValueError as error:
        raise RemoteError("malformed", f"{who} answers with what is no log") from error


async def follow_logs(
    context: Context,
    job: str,
    task: str | None,
    follow: bool,
    tail: int | None,
    admitted: Callable[[], Awaitable[bool]],
) -> AsyncIterator[str]:
    """The logs of a job's current attempt, from the last ``tail`` lines of each task on (None: all); with ``follow``
    until the job is over and all of it was read, or whoever follows is ``admitted`` no more: the last line says so."""
    logs: dict[str, _Tail] = {}

    async def goes_on() -> bool:
        return not context.stopping.is_set() and await admitted()

    while await goes_on():
        view = await context.database.read(lambda tx: job_views.job_view(tx, job, context.measurements))
        for each in view.placement:
            if each.allocation and each.node and task in (None, each.name):
                logs.setdefault(each.allocation, _from_agent(context, each, task is None, tail))
        run = None if view.region is None else await context.database.read(lambda tx: remote_run(tx, job))
        if run is not None:
            for each in view.placement:
                if task in (None, each.name):
                    logs.setdefault(
                        f"{run.remote} {each.name}", _from_region(context, run, each.name, task is None, tail)
                    )
        parts = await context.database.read(lambda tx: parts_of(tx, job)) if view.parts else []
        for part in parts:
            await _add_part(context, part, task, tail, logs)
        for log in logs.values():
            if not log.complete or view.state not in JOB_OVER:
                async for text in log.read(goes_on):
                    if text:
                        yield text
        if not follow or (view.state in JOB_OVER and all(log.complete for log in logs.values())):
            return
        tail = None  # later attempts are shown from their beginning
        await asyncio.sleep(LOOK_S)
    if not await admitted():
        yield ENDED
