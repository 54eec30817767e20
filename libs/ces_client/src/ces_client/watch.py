"""A job as it changes. The event stream tells when to look again, so following costs the manager next to nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import Protocol

import httpx

from ces_client.errors import CesError, Unreachable
from ces_client.stream import StreamEvent
from ces_common.messages.api import JobView, TaskView
from ces_common.states import ALLOCATION_OVER, JOB_OVER

TICK_S = 0.5
GATHER_S = 0.1  # a burst of events is one change
REFRESH_S = 2.0  # measurements come no other way, and a lost event costs this long, no more
STOPPING_S = 0.5  # between looks at a job that is over: its events have ended
PATIENCE_S = 60.0  # how long the manager may be away


class JobSource(Protocol):
    """The part of the SDK that a watch needs."""

    def get(self, job: str) -> JobView: ...

    def events(self, job: str, *, after: int = 0) -> Iterator[StreamEvent]: ...


def ended(view: JobView) -> bool:
    """Whether a job is over and its workers are, too: those of a cancelled job still have to be stopped."""
    return view.state in JOB_OVER and all(
        task.state is None or task.state in ALLOCATION_OVER for task in view.placement
    )


def watch(jobs: JobSource, job: str) -> Iterator[JobView]:
    """The job now, then at least every half second until it and its workers have ended; the last view is of the end."""
    view = jobs.get(job)
    yield view
    if ended(view):
        return
    inbox: SimpleQueue[StreamEvent] = SimpleQueue()
    stopped = threading.Event()
    # A thread, since a blocking read would keep Ctrl-C and deadlines waiting. It ends with the next event.
    threading.Thread(target=_pump, args=(jobs, job, inbox, stopped), name=f"events of {job}", daemon=True).start()
    looked = answered = time.monotonic()
    try:
        while not ended(view):
            news = _take(inbox)
            now = time.monotonic()
            pause_s = STOPPING_S if view.state in JOB_OVER else REFRESH_S
            if any(event.sequence is not None for event in news) or now - looked >= pause_s:
                looked = now
                try:
                    view = jobs.get(job)
                    answered = now
                except Unreachable:
                    if now - answered > PATIENCE_S:
                        raise
            for event in news:
                view = fold(view, event)
            yield view
    finally:
        stopped.set()


def fold(view: JobView, event: StreamEvent) -> JobView:
    """The view with a worker's live ``progress`` put in; the same one for any other event."""
    if event.type != "progress":
        return view
    task, data = event.data.get("task"), event.data.get("data")
    return view.model_copy(update={"placement": [_with_progress(one, task, data) for one in view.placement]})


def _with_progress(task: TaskView, name: object, data: object) -> TaskView:
    if task.name != name or not isinstance(data, dict):
        return task
    return task.model_copy(update={"progress": data})


def _take(inbox: SimpleQueue[StreamEvent]) -> list[StreamEvent]:
    """The events that have arrived: waits one tick for the first, then a moment for the rest of a burst."""
    news: list[StreamEvent] = []
    wait_s, until = TICK_S, None
    try:
        while wait_s > 0:
            news.append(inbox.get(timeout=wait_s))
            until = until or time.monotonic() + GATHER_S
            wait_s = until - time.monotonic()
    except Empty:
        pass
    return news


def _pump(jobs: JobSource, job: str, inbox: SimpleQueue[StreamEvent], stopped: threading.Event) -> None:
    try:
        for event in jobs.events(job):
            if stopped.is_set():
                return
            inbox.put(event)
    except (CesError, httpx.HTTPError, RuntimeError):
        return  # the watcher looks for itself every few seconds, and reports if nobody answers it
