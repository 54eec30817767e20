"""Many calls with a bound on how many are under way."""

import asyncio

import pytest

from ces_common.at_once import at_once


async def test_results_come_in_the_order_of_the_items() -> None:
    async def late_first(number: int) -> int:
        for _ in range(10 - number):
            await asyncio.sleep(0)
        return number * 2

    assert await at_once(late_first, range(10)) == [number * 2 for number in range(10)]
    assert await at_once(late_first, []) == []


async def test_no_more_than_the_bound_are_under_way() -> None:
    under_way, most = 0, 0

    async def act(_: int) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1

    await at_once(act, range(20), most=3)
    assert most == 3


async def test_after_a_failure_none_begins_and_those_under_way_end() -> None:
    begun, ended = [], []

    async def act(number: int) -> None:
        begun.append(number)
        await asyncio.sleep(0)
        if number == 0:
            raise LookupError("zero")
        await asyncio.sleep(0)
        ended.append(number)

    with pytest.raises(LookupError, match="zero"):
        await at_once(act, range(20), most=3)
    assert begun == [0, 1, 2]
    assert ended == [1, 2]
