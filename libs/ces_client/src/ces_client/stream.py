"""Server-sent events: reopened after every break, from the last numbered event on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
from httpx_sse import EventSource, SSEError

from ces_client.errors import UnexpectedAnswer
from ces_client.http import Http
from ces_common.messages.events import event_type
from ces_common.states import JOB_OVER

SO_FAR = "so-far"  # the type of what tells that all events so far have come
STALLS_S = 10.0  # of a manager that has not told yet; less than the pause between its comments
SILENCE_S = 45.0  # the server says something at least every 15 s, a comment if nothing else
PATIENCE_S = 60.0  # how long the manager may be away
REOPEN_S = 1.0  # unless the server names another pause
ENDS = frozenset(event_type("job", state.value) for state in JOB_OVER)


@dataclass(frozen=True)
class StreamEvent:
    """An event of the log (``data`` is its CloudEvent); without a ``sequence``, live ``progress``, not logged."""

    type: str
    sequence: int | None
    data: dict[str, Any]


def follow(http: Http, path: str, *, after: int, until_job_ends: bool) -> Iterator[StreamEvent]:
    """Events later than number ``after``, then those to come, as they happen.

    Never ends by itself unless ``until_job_ends``. Raises Unreachable when the manager stays away for a minute.
    """
    last = after
    while True:
        pause_s = REOPEN_S
        try:
            with http.stream(path, headers=_headers(last), read_s=SILENCE_S, patience_s=PATIENCE_S) as response:
                for sse in EventSource(response).iter_sse():
                    pause_s = sse.retry / 1000 if sse.retry is not None else pause_s
                    event = _event(http, sse.event, sse.id, sse.data)
                    if event is None or event.type == SO_FAR or (event.sequence or last + 1) <= last:
                        continue
                    last = event.sequence or last
                    yield event
                    if until_job_ends and event.type in ENDS:
                        return
        except SSEError as error:
            raise UnexpectedAnswer(http.url, str(error)) from error
        except httpx.TransportError:
            pass  # reopened below, from the last number on
        time.sleep(pause_s)


def so_far(http: Http, path: str, *, after: int) -> Iterator[StreamEvent]:
    """The events later than number ``after`` up to the last when this was asked, without progress; the manager tells
    when they have come. Raises Unreachable when the connection cannot be made or breaks, or the manager stalls."""
    try:
        with http.stream(path, headers=_headers(after), read_s=STALLS_S) as response:
            for sse in EventSource(response).iter_sse():
                event = _event(http, sse.event, sse.id, sse.data)
                if event is not None and event.type == SO_FAR:
                    return
                if event is not None and event.sequence is not None:
                    yield event
    except SSEError as error:
        raise UnexpectedAnswer(http.url, str(error)) from error
    except httpx.TransportError as error:
        raise http.unreachable(error) from error
    raise http.unreachable(httpx.ReadError("the stream ended before all events so far had come"))


def newline_split(response: httpx.Response) -> Iterator[str]:
    """The lines of a text, which end at a newline and at nothing else: what programs print may hold carriage returns,
    form feeds and Unicode's line separators, at which ``iter_lines`` would split."""
    parts: list[str] = []
    for text in response.iter_text():
        *whole, rest = text.split("\n")
        for line in whole:
            yield "".join((*parts, line))
            parts.clear()
        parts.append(rest)
    if last := "".join(parts):
        yield last


def _headers(last: int) -> dict[str, str]:
    return {"Accept": "text/event-stream", "Cache-Control": "no-store", "Last-Event-ID": str(last)}


def _event(http: Http, kind: str, number: str, data: str) -> StreamEvent | None:
    if not data:
        return None
    try:
        content = json.loads(data)
        # The last id sticks to later messages (as the standard has it), so the type tells whether this one has its own.
        sequence = int(number) if kind.startswith("ces.") else None
    except ValueError as error:
        raise UnexpectedAnswer(http.url, f"event {kind}: {error}") from error
    if not isinstance(content, dict):
        raise UnexpectedAnswer(http.url, f"event {kind}: its data is no object")
    return StreamEvent(kind, sequence, content)
