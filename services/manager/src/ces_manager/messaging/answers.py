"""What those who ask over the bus are told when the database fails them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import structlog
from sqlalchemy.exc import SQLAlchemyError

from ces_common.bus.port import RemoteError
from ces_common.db import UNAVAILABLE, cause_of

log = structlog.get_logger()
NO_DATABASE = "the database does not answer"
MAX_PROBLEM = 300  # characters
T = TypeVar("T")


@contextmanager
def answering(what: str) -> Iterator[None]:
    """Tells the asker only that the database does not answer; its own words, with its address, go to the log."""
    try:
        yield
    except UNAVAILABLE as error:
        log.warning(NO_DATABASE, asked=what, error=cause_of(error))
        raise RemoteError("unavailable", NO_DATABASE) from None
    except SQLAlchemyError as error:
        log.exception("a request failed", asked=what)
        raise failure(error) from None


def problem_of(error: ValueError) -> str:
    """What is wrong with a message, as far as it is worth telling."""
    return str(error)[:MAX_PROBLEM]


def failure(error: Exception) -> RemoteError:
    return RemoteError("internal", f"the manager failed at this: {type(error).__name__}")


async def salvage(items: Sequence[T], work: Callable[[Sequence[T]], Awaitable[object]]) -> list[tuple[T, Exception]]:
    """Do ``work`` for all items at once; where that fails, for each half by itself, and so on. Returns the items for
    which it fails alone. An unavailable database is nobody's fault, and raised."""
    if not items:
        return []
    try:
        await work(items)
    except UNAVAILABLE:
        raise
    except Exception as error:
        if len(items) == 1:
            return [(items[0], error)]
        middle = len(items) // 2
        return [*await salvage(items[:middle], work), *await salvage(items[middle:], work)]
    return []
