"""Tasks around a client library that may swallow their cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import structlog
from nats.aio.subscription import Subscription

from ces_common.bus.port import Callback

log = structlog.get_logger(__name__)

DRAIN_S: Final = 3.0


async def logged(callback: Callback) -> None:
    try:
        await callback()
    except Exception:
        log.exception("a reconnect callback failed")


async def settle(work: Sequence[Awaitable[Any]]) -> None:
    """Wait for all of it, but not for ever."""
    if work:
        _, late = await asyncio.wait([asyncio.ensure_future(each) for each in work], timeout=DRAIN_S)
        for each in late:
            await stop(each)


@contextmanager
def cancellation_kept() -> Iterator[None]:
    """Raises CancelledError if the task was cancelled meanwhile: the library swallows a cancellation that meets it
    while flushing, and a loop that published would go on for ever."""
    task = asyncio.current_task()
    assert task is not None, "only a task can be cancelled"
    before = task.cancelling()
    try:
        yield
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError


async def stop(task: asyncio.Future[Any]) -> None:
    """Cancel until it has ended: the library swallows a cancellation that meets it while flushing."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=0.5)
    if not task.cancelled():
        task.exception()


async def drain(subscription: Subscription) -> None:
    await subscription.drain()  # type: ignore[no-untyped-call]
