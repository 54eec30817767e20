"""Workers' output: answered on request, and searched for lines of progress as it grows."""

from __future__ import annotations

import codecs
import time
from collections.abc import Mapping
from pathlib import Path

from pydantic_core import from_json

from ces_common.messages.queries import LogAnswer, LogQuery
from ces_common.messages.reports import Progress, WorkerStatus
from ces_common.messages.wanted import WorkerWanted
from ces_edge_agent.ports import Runtime
from ces_edge_agent.reconcile import ALIVE

LINE_LIMIT = 16 * 1024
READ_LIMIT = 1024 * 1024


def answer_log(runtime: Runtime, query: LogQuery, observed: Mapping[str, WorkerStatus]) -> LogAnswer:
    """Part of an allocation's log, cut after the last whole character. What is no text shows as such."""
    path = runtime.log(query.allocation)
    alive = any(w.allocation == query.allocation and w.state in ALIVE for w in observed.values())
    try:
        with path.open("rb") as file:
            file.seek(query.offset)
            raw = file.read(query.limit)
            more = bool(file.read(1))
    except FileNotFoundError:
        return LogAnswer(found=False, complete=not alive)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(raw, final=not more and not alive)
    held_back, _ = decoder.getstate()  # the beginning of a character whose end is yet to be read or written
    offset = query.offset + len(raw) - len(held_back)
    return LogAnswer(found=True, offset=offset, text=text, complete=not alive and not more)


def progress_of(line: bytes) -> dict[str, object] | None:
    """The progress in one line of output: a JSON object with ``progress`` or ``result`` as an object; else None.

    Workers may print anything: what is found can be sent on, whatever it is.
    """
    if not line.startswith(b"{") or len(line) > LINE_LIMIT:
        return None
    try:
        data = from_json(line)  # refuses what cannot be written again: lone surrogates, bottomless nesting
    except ValueError:
        return None
    found = data.get("progress") or data.get("result")
    return found if isinstance(found, dict) else None


class ProgressTail:
    """Reads on in each worker's log and gives the last progress found in what is new."""

    def __init__(self, node: str, runtime: Runtime) -> None:
        self._node, self._runtime = node, runtime
        self._offsets: dict[str, int] = {}

    def look(self, workers: list[WorkerWanted]) -> list[Progress]:
        wanted = {worker.allocation: worker for worker in workers}
        for gone in self._offsets.keys() - wanted.keys():
            del self._offsets[gone]
        found = []
        for allocation, worker in wanted.items():
            latest = self._latest(allocation)
            if latest is not None:
                found.append(
                    Progress(node=self._node, allocation=allocation, job=worker.job, task=worker.task, data=latest)
                )
        return found

    def _latest(self, allocation: str) -> dict[str, object] | None:
        offset = self._offsets.get(allocation, 0)
        try:
            with self._runtime.log(allocation).open("rb") as file:
                file.seek(offset)
                new = file.read(READ_LIMIT)
        except FileNotFoundError:
            return None
        whole, newline, _ = new.rpartition(b"\n")
        if not newline:
            # a line longer than one read is no progress: step over it
            self._offsets[allocation] = offset + (len(new) if len(new) == READ_LIMIT else 0)
            return None
        self._offsets[allocation] = offset + len(whole) + 1
        for line in reversed(whole.split(b"\n")):
            found = progress_of(line)
            if found is not None:
                return found
        return None


def discard_old_logs(folder: Path, keep_s: float, in_use: set[Path]) -> None:
    """Delete logs of workers long gone."""
    for path in folder.glob("*.log"):
        if path not in in_use and time.time() - path.stat().st_mtime > keep_s:
            path.unlink(missing_ok=True)
