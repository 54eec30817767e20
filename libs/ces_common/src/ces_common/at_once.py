"""Many calls, a bounded number of them under way at one time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")
AT_ONCE = 32


async def at_once(act: Callable[[A], Awaitable[R]], items: Iterable[A], most: int = AT_ONCE) -> list[R]:
    """What ``act`` returns for each item, in their order, with at most ``most`` calls under way. After a failure no
    other call begins; it is raised once those under way have ended."""
    waiting = list(enumerate(items))[::-1]
    results: dict[int, R] = {}
    failures: list[Exception] = []

    async def work() -> None:
        while waiting and not failures:
            number, item = waiting.pop()
            try:
                results[number] = await act(item)
            except Exception as error:
                failures.append(error)

    await asyncio.gather(*(work() for _ in range(min(most, len(waiting)))))
    if failures:
        raise failures[0]
    return [results[number] for number in range(len(results))]
