"""Waiting for services: what each says it still lacks, and when waiting is of no use any more."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import httpx

from ces_common.health import COMPILING
from ces_common.tls.pins import trusting

READY_S = 90.0
COMPILED_S = (
    600.0  # with what a scheduler compiles, where that is not kept: a minute of CPU time, more on a small board
)
ANSWER_S = 2.0
BUSY = 1.5  # programs that want a core
QUIET_S = 3.0  # what is missing for a shorter time is no news


class ReadyProbe:
    """Asks a central service's ``/readyz``. ``missing``: what it said last that it lacks; empty where it said nothing.
    ``authority``: the file to check an https URL by.
    A context manager."""

    def __init__(
        self,
        url: str,
        transport: httpx.BaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        authority: Path | None = None,
    ) -> None:
        self._url, self._clock = url, clock
        self._news, self._since = "", 0.0
        verify = trusting(authority.read_text() if authority is not None else None)
        self._http = httpx.Client(timeout=ANSWER_S, trust_env=False, transport=transport, verify=verify)
        self.missing = ""
        self.remark: str | None = None

    def ready(self) -> bool:
        try:
            answer = self._http.get(self._url)
            told = answer.json()
        except httpx.TimeoutException:
            return False  # it compiles, say, and has no time to answer: what it said last still holds
        except (httpx.TransportError, ValueError):
            self.missing = ""
            return False
        self.missing = str(told.get("missing", ""))
        self.remark = told.get("remark")
        return answer.status_code == 200

    @property
    def compiling(self) -> bool:
        return self.missing == COMPILING

    def news(self) -> str:
        """What has been missing for a while, once; empty otherwise."""
        now = self._clock()
        if self.missing != self._news:
            self._news, self._since = self.missing, now
        if not self.missing or now - self._since < QUIET_S:
            return ""
        self._since = math.inf
        return self.missing + (" (a minute or more, and only once where it can be kept)" if self.compiling else "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()


class Patience:
    """How long to wait: ``ready_s``, and the time that is spent compiling besides, together ``compiled_s`` at most."""

    def __init__(
        self,
        ready_s: float = READY_S,
        compiled_s: float = COMPILED_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ready_s, self._compiled_s, self._clock = ready_s, compiled_s, clock
        self._began = self._looked = clock()
        self._waited = 0.0

    def is_over(self, *, compiling: bool = False) -> bool:
        """``compiling``: whether the time since the last call went into that."""
        now = self._clock()
        if not compiling:
            self._waited += now - self._looked
        self._looked = now
        return self._waited > self._ready_s or now - self._began > self._compiled_s


def busy() -> str:
    """A sentence where many more programs want to run than there are cores, which may be why something is late; else
    nothing."""
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load <= BUSY * cores:
        return ""
    return f" The machine is busy (load average {load:.1f} on {cores} cores): try again when it is less so."


def accepts(host: str, port: int) -> bool:
    """Whether something listens there."""
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False
