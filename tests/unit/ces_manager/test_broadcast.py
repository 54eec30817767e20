"""What wakes the event streams."""

from __future__ import annotations

import asyncio

from ces_manager.broadcast import Broadcast


async def test_a_listener_that_is_cancelled_in_the_moment_of_a_commit_ends() -> None:
    broadcast = Broadcast()

    async def listen() -> None:
        async for _ in broadcast.listen(60):
            pass

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0)
    broadcast.wake()
    listening.cancel()
    done, _ = await asyncio.wait({listening}, timeout=60)
    assert done == {listening}
    assert listening.cancelled()
