"""Fetching a checkpoint from another node's agent, over HTTP in the data plane."""

from __future__ import annotations

import hashlib
import http.client
import re
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO
from urllib.parse import SplitResult, urlsplit

CONNECT_S = 5.0
SILENCE_S = 30.0
PACKING_S = 60.0  # for which a node has a reader wait while it packs the newest one; it goes on packing then
START_S = 60.0  # of a fetch, in which it may be slower than LEAST_RATE
LEAST_RATE = 2**14  # bytes/s, on average from then on
_CHUNK = 2**18
_DIGEST = re.compile(r'"([0-9a-f]{64})"')


class NotFetched(Exception):
    """The text says why. ``again``: it may work in a moment, since the other node may not have heard yet that it is to
    serve this one."""

    def __init__(self, why: str, again: bool = False) -> None:
        super().__init__(why)
        self.again = again


class NoneThere(NotFetched):
    """That node lacks the checkpoint, or sent another one: asking it again will not help."""


class Silent(NotFetched):
    """The other node takes too long."""


def allowed_s(size: int) -> float:
    """Seconds in which ``size`` bytes must have come, from the answer's headers on."""
    return START_S + size / LEAST_RATE


@dataclass(frozen=True)
class Wanted:
    """What is asked for. ``size`` and ``digest``: None where only the other node knows them; ``limit``: bytes."""

    limit: int
    size: int | None = None
    digest: str | None = None


def place_of(url: str) -> tuple[str, int]:
    """Address and port. Raises NotFetched."""
    try:
        parts: SplitResult = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port:
        raise NotFetched("it is not known yet where that node serves checkpoints", again=True)
    return host, port


def fetch(
    connected: socket.socket,
    path: str,
    headers: Mapping[str, str],
    into: IO[bytes],
    wanted: Wanted,
    still: Callable[[], bool],
    answered: Callable[[], None],
) -> str:
    """Write the archive; returns its digest, which is as wanted, or as the other node says. ``still``: whether it is
    wanted any more; ``answered`` is called once it sends the archive. Blocking; closes the socket. Raises NotFetched,
    and OSError of the file."""
    connected.settimeout(SILENCE_S if wanted.digest else PACKING_S + SILENCE_S)
    connection = http.client.HTTPConnection("checkpoints")
    connection.sock = connected
    try:
        try:
            connection.request("GET", path, headers={**headers, "Connection": "close"})
            answer = connection.getresponse()
        except TimeoutError as error:
            raise Silent("it does not answer") from error
        except (http.client.HTTPException, OSError) as error:
            raise NotFetched(f"it does not answer: {error or type(error).__name__}", again=True) from error
        if answer.status == HTTPStatus.NOT_FOUND:
            raise NoneThere(f"it answers {answer.status}: {_said(answer)}")
        if answer.status != HTTPStatus.OK:
            again = answer.status in (HTTPStatus.FORBIDDEN, HTTPStatus.SERVICE_UNAVAILABLE)
            raise NotFetched(f"it answers {answer.status}: {_said(answer)}", again)
        found = _DIGEST.fullmatch(answer.getheader("ETag") or "")
        size = answer.length
        if found is None or size is None or size > wanted.limit or wanted.size not in (None, size):
            raise NotFetched(f"it answers with {size} bytes that are no checkpoint, or a larger one than may be kept")
        connected.settimeout(SILENCE_S)
        answered()
        seen = _copy(answer, into, size, still)
        if seen != (wanted.digest or found[1]):
            raise NoneThere("what it sent has another digest")
        return seen
    finally:
        connection.close()
        connected.close()


def _copy(answer: http.client.HTTPResponse, into: IO[bytes], size: int, still: Callable[[], bool]) -> str:
    seen, left, began = hashlib.sha256(), size, time.monotonic()
    while left:
        if not still():
            raise NotFetched("it is wanted no longer")
        if time.monotonic() - began > allowed_s(size - left):
            raise Silent(f"it sends less than {LEAST_RATE} bytes/s")
        try:
            part = answer.read1(min(left, _CHUNK))
        except TimeoutError as error:
            raise Silent("it stopped sending") from error
        except (http.client.HTTPException, OSError) as error:
            raise NotFetched(f"it stopped sending: {error or type(error).__name__}") from error
        if not part:
            raise NotFetched("it stopped sending")
        into.write(part)
        seen.update(part)
        left -= len(part)
    return seen.hexdigest()


def _said(answer: http.client.HTTPResponse) -> str:
    return answer.read(300).decode(errors="replace")
