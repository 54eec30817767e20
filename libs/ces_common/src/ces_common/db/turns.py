"""Whose turn it is to write, among the threads of one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class WriteTurns:
    """One writer at a time, urgent ones first. SQLite lets in one at a time as well, but whoever waits there only looks
    again at growing intervals, and may find another in each time. ``patience_s``: then the database is left to it."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._changed = Condition()
        self._taken = False
        self._waiting = self._urgent = 0  # all that wait, and the urgent ones among them

    def waiting(self) -> int:
        return self._waiting

    @contextmanager
    def turn(self, *, urgent: bool) -> Iterator[None]:
        mine = self._take(urgent)
        try:
            yield
        finally:
            if mine:
                with self._changed:
                    self._taken = False
                    self._changed.notify_all()

    def _take(self, urgent: bool) -> bool:
        with self._changed:
            self._waiting, self._urgent = self._waiting + 1, self._urgent + urgent
            try:
                free = self._changed.wait_for(
                    lambda: not self._taken and (urgent or not self._urgent), self._patience_s
                )
            finally:
                self._waiting, self._urgent = self._waiting - 1, self._urgent - urgent
            if free:
                self._taken = True
            else:
                self._changed.notify_all()  # nobody has to stand back for this one any more
            return free
