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

QUIET_S = 1.0  # without an event, after which those so far have come
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
                    if event is None or (event.sequence is not None and event.sequence <= last):
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
    """The events later than number ``after`` up to now, without progress: ends when none has come for a second.
    Raises Unreachable when the connection cannot be made or breaks."""
    heard = time.monotonic()
    try:
        with http.stream(path, headers=_headers(after), read_s=QUIET_S) as response:
            for sse in EventSource(response).iter_sse():
                event = _event(http, sse.event, sse.id, sse.data)
                if event is not None and event.sequence is not None:
                    heard = time.monotonic()
                    yield event
                elif time.monotonic() - heard >= QUIET_S:  # a busy job's progress never pauses
                    return
    except SSEError as error:
        raise UnexpectedAnswer(http.url, str(error)) from error
    except httpx.ReadTimeout:
        return
    except httpx.TransportError as error:
        raise http.unreachable(error) from error


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
