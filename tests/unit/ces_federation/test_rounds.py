"""Rounds with regions, and whose turn it is in them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from waiting import until

from ces_federation.rounds import WORDS_AT_ONCE, Rounds, Turns


async def test_each_has_one_round_at_a_time_and_none_waits_for_another() -> None:
    rounds, go, began = Rounds(), asyncio.Event(), list[str]()

    def work(name: str) -> Callable[[], Coroutine[Any, Any, None]]:
        async def one() -> None:
            began.append(name)
            await go.wait()

        return one

    for name in ("b", "b", "c"):
        rounds.begin(name, work(name))
    await asyncio.sleep(0)
    assert began == ["b", "c"]
    assert "b" in rounds
    go.set()
    await until(lambda: not len(rounds))
    rounds.begin("b", work("b"))
    await asyncio.sleep(0)
    assert began == ["b", "c", "b"]
    await rounds.close()


async def test_a_round_that_fails_is_over() -> None:
    async def fails() -> None:
        raise ZeroDivisionError

    rounds = Rounds()
    rounds.begin("b", fails)
    await until(lambda: not len(rounds))


def test_those_come_first_that_were_not_asked_about_for_longest() -> None:
    now = 0.0
    turns = Turns[int](lambda: now)
    items = list(range(WORDS_AT_ONCE + 2))
    first, rest = turns.some(items, lambda item: item)
    assert [*first, *rest] == items
    now = 1.0
    some = turns.some(items, lambda item: item)
    assert next(some) == first, "all were asked about at the same time; and the others were not taken"
    now = 2.0
    assert next(turns.some(items, lambda item: item))[:2] == rest
    turns.keep({0})
    assert next(turns.some(items, lambda item: item))[-1] == WORDS_AT_ONCE
