"""What waits where only the newest of each sender counts."""

from __future__ import annotations

import asyncio

from ces_common.latest import LatestBatches

PATIENCE_S = 60.0


class Work:
    """Takes batches, the first one for as long as the test likes."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.go_on = asyncio.Event()
        self.begun = asyncio.Event()

    async def __call__(self, items: list[str]) -> None:
        self.batches.append(items)
        self.begun.set()
        await asyncio.wait_for(self.go_on.wait(), PATIENCE_S)
        if "bad" in items:
            raise ValueError("bad")

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.batches) < count:
                self.begun.clear()
                await self.begun.wait()


async def test_all_that_waits_is_one_batch_with_the_newest_of_each() -> None:
    work = Work()
    latest = LatestBatches(work)
    assert latest.put("a", "bad")
    await work.until(1)
    for i in range(100):
        assert latest.put(f"n{i % 10}", f"n{i % 10}.{i}")
    work.go_on.set()
    await work.until(2)
    assert work.batches == [["bad"], [f"n{i % 10}.{i}" for i in range(90, 100)]]
    await latest.close()


async def test_no_more_waits_than_there_is_room_for() -> None:
    work = Work()
    latest = LatestBatches(work, most=2, most_bytes=100)
    assert [latest.put("a", "a", 60), latest.put("b", "b", 60), latest.put("b", "b", 40)] == [True, False, True]
    assert not latest.put("c", "c")
    assert latest.put("a", "a2", 10), "what takes the place of another needs none of its own"
    assert not latest.put("a", "a3", 61)
    work.go_on.set()
    await work.until(1)
    assert work.batches == [["a2", "b"]]
    assert latest.put("c", "c", 100)
    await work.until(2)
    await latest.close()
