"""What tests of the bus do with it on either of its implementations: facts about jobs, and hearing what comes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ces_common import subjects
from ces_common.bus.port import Bus, Delivery

SOON = 60.0  # patience on a busy machine, not a wait
Client = Callable[[], Awaitable[Bus]]  # makes a connected client of one broker
JOBS = [subjects.events("job")]


class Seen:
    """Collects what handlers get, and lets a test wait for it."""

    def __init__(self) -> None:
        self.all: list[Delivery] = []
        self._queue: asyncio.Queue[Delivery] = asyncio.Queue()

    async def __call__(self, delivery: Delivery) -> None:
        self.all.append(delivery)
        self._queue.put_nowait(delivery)

    async def next(self) -> Delivery:
        return await asyncio.wait_for(self._queue.get(), SOON)


async def put_job(bus: Bus, number: int, data: bytes = b"x") -> bool:
    return await bus.publish_fact(subjects.event("job", "submitted", f"j{number}"), data, message_id=f"m{number}")


async def set_event(event: asyncio.Event) -> None:
    event.set()
