"""Helpers for tasks that call the NATS client library, which may swallow their cancellation."""

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
    """Call it; an exception is logged and goes no further."""
    try:
        await callback()
    except Exception:
        log.exception("a reconnect callback failed")


async def settle(work: Sequence[Awaitable[Any]]) -> None:
    """Wait for all of it, for at most ``DRAIN_S`` seconds; what is not done by then is stopped."""
    if work:
        _, late = await asyncio.wait([asyncio.ensure_future(each) for each in work], timeout=DRAIN_S)
        for each in late:
            await stop(each)


@contextmanager
def cancellation_kept() -> Iterator[None]:
    """For calls of the library: raises CancelledError at the end if the task was cancelled during the block. The
    library swallows a cancellation that comes while it flushes, and a loop that publishes would go on for ever."""
    task = asyncio.current_task()
    assert task is not None, "only a task can be cancelled"
    before = task.cancelling()
    try:
        yield
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError


async def stop(task: asyncio.Future[Any]) -> None:
    """Cancel the task, again and again until it has ended: one cancellation may be swallowed."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=0.5)
    if not task.cancelled():
        task.exception()


async def drain(subscription: Subscription) -> None:
    await subscription.drain()  # type: ignore[no-untyped-call]
