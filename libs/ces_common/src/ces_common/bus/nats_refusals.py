"""What the broker refuses: the library tells of it some time after the operation that caused it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from ces_common.bus.port import BusUnavailable

log = structlog.get_logger(__name__)

_REFUSED = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"')
_AUTH = ("authorization violation", "authentication", "user authentication revoked")


def is_no_entry(error: Exception) -> bool:
    """Whether it says that the broker does not let this identity in."""
    said = str(error).lower()
    return "timeout" not in said and any(word in said for word in _AUTH)  # a busy broker gives up, and refuses nobody


class Refusals:
    """Turns errors of the library into answers for the operations that wait for one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiters: dict[asyncio.Future[None], tuple[str, str]] = {}

    @contextmanager
    def of(self, action: str, subject: str) -> Iterator[asyncio.Future[None]]:
        """A future that is done when the broker refuses ``action`` (publish, subscription) on ``subject``, and that
        fails with BusUnavailable when the connection is lost."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = (action, subject.lower())  # the library reports errors in lower case
        try:
            yield waiter
        finally:
            del self._waiters[waiter]
            if not waiter.cancel() and not waiter.cancelled():
                waiter.exception()  # seen, whether or not anybody asked

    def told(self, error: Exception) -> bool:
        """Whether the error is of an operation that was refused; whoever waits for that is told."""
        match = _REFUSED.search(str(error).lower())
        if match is None:
            return False
        for waiter, refused in list(self._waiters.items()):
            if refused == match.groups() and not waiter.done():
                waiter.set_result(None)
        log.warning("bus permission refused", name=self._name, action=match[1], subject=match[2])
        return True

    def lost(self) -> None:
        """The connection is lost: nobody will hear of a refusal any more."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(BusUnavailable("the message broker was lost before it answered"))
