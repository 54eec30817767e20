"""A database whose manager may die right after a commit, before anybody is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from processes import Killed
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from ces_common.db import UnitOfWork, WriteTx


class MortalUnitOfWork(UnitOfWork):
    """``committed`` is called after each numbered transaction. ``lives``: for how many more transactions that write the
    process lives, None for ever; then ``die`` is called."""

    def __init__(self, engine: Engine, committed: Callable[[], None], die: Callable[[], None]) -> None:
        super().__init__(engine)
        self._committed, self._die = committed, die
        self.lives: int | None = None

    @contextmanager
    def write(self, now: datetime, actor: str | None = None) -> Iterator[WriteTx]:
        with super().write(now, actor) as tx:
            yield tx
        self._committed()
        self._passed()

    @contextmanager
    def bare_write(self, *, urgent: bool = False) -> Iterator[Session]:
        with super().bare_write(urgent=urgent) as session:
            yield session
        self._passed()

    def _passed(self) -> None:
        if self.lives is not None:
            self.lives -= 1
            if self.lives <= 0:
                self._die()
                raise Killed
