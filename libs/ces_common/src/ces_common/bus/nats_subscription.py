"""A subscription that outlives the client it was made with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

RawHandler = Callable[[Msg], Awaitable[None]]


@dataclass(eq=False)
class LastingSubscription:
    """``current``: what it is on the client of now; ``end`` takes it off that."""

    subject: str
    queue: str
    handler: RawHandler
    end: Callable[[LastingSubscription], Awaitable[None]]
    current: Subscription | None = None

    async def close(self) -> None:
        await self.end(self)
