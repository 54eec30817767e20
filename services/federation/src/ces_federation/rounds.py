"""How a home goes on with other regions: a round with each of them beside those with the others, and, within a round,
some words at a time."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Coroutine, Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

import structlog

from ces_common.bus.port import BusError

log = structlog.get_logger()
STEP_S = 1.0
WORDS_AT_ONCE = 8  # that one region is asked: a quarter of what it answers at once
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


async def repeatedly(look: Callable[[], Awaitable[None]]) -> None:
    """Each second; a manager that does not answer is asked again."""
    while True:
        try:
            await look()
        except BusError as error:
            log.warning("the manager does not answer", error=str(error))
        await asyncio.sleep(STEP_S)


class Rounds:
    """One at a time with each region: one that is slow delays no other, and a round that fails ends none."""

    def __init__(self) -> None:
        self._going: dict[str, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._going)

    def __contains__(self, name: str) -> bool:
        return name in self._going

    def begin(self, name: str, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Unless the round before is not over yet."""
        if name not in self._going:
            self._going[name] = asyncio.create_task(self._round(name, work))

    async def _round(self, name: str, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        try:
            await work()
        except Exception:
            log.exception("a region cannot be followed", region=name)
        finally:
            del self._going[name]

    async def close(self) -> None:
        tasks = list(self._going.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Turns(Generic[K]):
    """Whose turn it is to be asked about: those first that were not for longest, so that one that is never answered,
    though its region is there, holds up no other. ``clock``: steady."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._asked: dict[K, float] = {}

    def keep(self, keys: Collection[K]) -> None:
        """Forget all others."""
        self._asked = {key: at for key, at in self._asked.items() if key in keys}

    def some(self, items: Sequence[T], key: Callable[[T], K]) -> Iterator[list[T]]:
        """Some at a time, in turn; they count as asked about once they are taken."""
        in_turn = sorted(items, key=lambda item: self._asked.get(key(item), float("-inf")))
        for start in range(0, len(in_turn), WORDS_AT_ONCE):
            taken = in_turn[start : start + WORDS_AT_ONCE]
            self._asked |= {key(item): self._clock() for item in taken}
            yield taken


class OfRegion(Protocol):
    @property
    def region(self) -> str: ...


R = TypeVar("R", bound=OfRegion)


def by_region(items: Iterable[R]) -> dict[str, list[R]]:
    found: dict[str, list[R]] = defaultdict(list)
    for item in items:
        found[item.region].append(item)
    return found
