"""A clock that leaps."""

from __future__ import annotations

import asyncio

import pytest

from ces_experiments.regions.virtual_time import run_virtually


def test_hours_pass_in_their_order() -> None:
    seen = []

    async def sleeper(hours: float) -> None:
        await asyncio.sleep(3600 * hours)
        seen.append((hours, asyncio.get_running_loop().time()))

    async def main() -> str:
        await asyncio.gather(*(sleeper(hours) for hours in (3, 1, 2)))
        return "done"

    assert run_virtually(main()) == "done"
    assert [hours for hours, _ in seen] == [1, 2, 3]
    assert [at for _, at in seen] == pytest.approx([3600, 7200, 10800])


def test_a_time_limit_is_one_of_this_clock() -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await asyncio.sleep(61)

    with pytest.raises(TimeoutError):
        run_virtually(main())


def test_an_error_in_a_callback_ends_the_run() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(5, lambda: 1 / 0)
        await asyncio.sleep(10)

    with pytest.raises(ZeroDivisionError):
        run_virtually(main())


def test_waiting_for_nothing_is_told() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="nothing is to come"):
        run_virtually(main())
