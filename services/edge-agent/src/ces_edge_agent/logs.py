"""Workers' output: sent on request, and searched for lines of progress as it grows."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping

from pydantic_core import from_json

from ces_common.messages.agent_queries import LogAnswer, LogQuery
from ces_common.messages.desired import DesiredWorker
from ces_common.messages.reports import Progress, WorkerStatus
from ces_edge_agent.ports import LogStore
from ces_edge_agent.reconcilers.actions import ALIVE

LINE_LIMIT = 16 * 1024
READ_LIMIT = 1024 * 1024


async def answer_log(logs: LogStore, query: LogQuery, observed: Mapping[str, WorkerStatus]) -> LogAnswer:
    """Part of an allocation's log, cut at a character boundary. Bytes that are not UTF-8 are shown as U+FFFD, and a
    line says where bytes were dropped."""
    alive = any(w.allocation == query.allocation and w.state in ALIVE for w in observed.values())
    offset = query.offset if query.tail is None else await logs.tail(query.allocation, query.tail)
    chunk = None if offset is None else await logs.read(query.allocation, offset, query.limit)
    if chunk is None:
        return LogAnswer(found=False, complete=not alive)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(chunk.data, final=chunk.gap or not (chunk.more or alive))
    incomplete, _ = decoder.getstate()  # the beginning of a character whose end is yet to be read or written
    if chunk.dropped:
        text = f"\n[ces] {chunk.dropped} bytes were dropped here: a log keeps its beginning and its end\n{text}"
    return LogAnswer(
        found=True,
        offset=chunk.offset + len(chunk.data) - len(incomplete),
        text=text,
        complete=not alive and not chunk.more,
    )


def progress_of(line: bytes) -> dict[str, object] | None:
    """The progress in a line of output: the object at ``progress`` or ``result`` of a JSON object, else None. Whatever
    a worker prints, the result can be encoded as JSON again."""
    if not line.startswith(b"{") or len(line) > LINE_LIMIT:
        return None
    try:
        data = from_json(line)  # refuses what cannot be encoded again: lone surrogates, very deep nesting
    except ValueError:
        return None
    found = data.get("progress") or data.get("result")
    return found if isinstance(found, dict) else None


class ProgressReader:
    """Follows each worker's log and finds the latest progress in its new lines. ``clock``: seconds, steady."""

    def __init__(self, node: str, logs: LogStore, clock: Callable[[], float]) -> None:
        self._node, self._logs, self._clock = node, logs, clock
        self._offsets: dict[str, int] = {}

    async def read(self, workers: list[DesiredWorker]) -> list[Progress]:
        """The latest progress of every worker that printed one since the last call."""
        desired = {worker.allocation: worker for worker in workers}
        self._offsets = {allocation: offset for allocation, offset in self._offsets.items() if allocation in desired}
        found = []
        for allocation, worker in desired.items():
            latest = await self._latest(allocation)
            if latest is not None:
                found.append(
                    Progress(
                        node=self._node,
                        allocation=allocation,
                        job=worker.job,
                        task=worker.task,
                        incarnation=worker.incarnation,
                        seen_s=max(0.0, self._clock()),
                        data=latest,
                    )
                )
        return found

    async def _latest(self, allocation: str) -> dict[str, object] | None:
        chunk = await self._logs.read(allocation, self._offsets.get(allocation, 0), READ_LIMIT)
        if chunk is None:
            return None
        whole, newline, _ = chunk.data.rpartition(b"\n")
        # The rest of a line waits for its end, unless that was dropped or the line is too long to be progress.
        given_up = chunk.gap or (not newline and len(chunk.data) == READ_LIMIT)
        self._offsets[allocation] = chunk.offset + (len(chunk.data) if given_up else len(whole + newline))
        for line in reversed(whole.split(b"\n")):
            found = progress_of(line)
            if found is not None:
                return found
        return None
