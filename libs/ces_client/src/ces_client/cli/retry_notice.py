"""The notice that a command prints while the manager does not answer."""

from __future__ import annotations

import time

import httpx
from rich.text import Text
from stamina.instrumentation import RetryDetails

from ces_client.cli.output import console
from ces_client.http import Busy

QUIET_S = 1.0  # a shorter wait is not worth a word


class RetryNotice:
    """Called at each retry; prints once for each outage that lasts longer than ``QUIET_S``."""

    def __init__(self) -> None:
        self._since = 0.0
        self._said = False

    def __call__(self, details: RetryDetails) -> None:
        now = time.monotonic()
        if details.retry_num == 1:
            self._since, self._said = now, False
        if self._said or now - self._since < QUIET_S:
            return
        self._said = True
        console(stderr=True).print(
            Text(f"{_what(details.caused_by)}; trying again for a while (Ctrl-C ends)"), soft_wrap=True
        )


def _what(error: Exception) -> str:
    if isinstance(error, Busy):
        return f"the manager cannot answer now (HTTP {error.response.status_code})"
    where = ""
    if isinstance(error, httpx.RequestError):
        url = error.request.url
        where = f" at {url.scheme}://{url.netloc.decode()}"
    return f"the manager{where} does not answer ({error or type(error).__name__})"
