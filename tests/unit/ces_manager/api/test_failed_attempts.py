"""How often an address may fail."""

from __future__ import annotations

import asyncio
from typing import Any

from ces_manager.api import failed_attempts, failure_counts
from ces_manager.api.auth import APPLICANTS, PROVEN
from ces_manager.api.failed_attempts import FailedAttempts
from ces_manager.api.failure_counts import FailureCounts


def test_who_fails_too_often_waits_and_then_may_try_again() -> None:
    counts = FailureCounts(per_s=0.5, burst=3)
    for _ in range(3):
        assert counts.wait_s("one", 10.0) == 0
        counts.failed("one", 10.0)
    assert counts.wait_s("one", 10.0) == 2.0
    assert counts.wait_s("other", 10.0) == 0
    assert counts.wait_s("one", 11.5) == 0.5
    assert counts.wait_s("one", 12.0) == 0
    counts.failed("one", 12.0)
    assert counts.wait_s("one", 12.0) == 2.0
    assert counts.wait_s("one", 100.0) == 0
    for _ in range(1000):
        counts.failed("one", 100.0)
    assert counts.wait_s("one", 106.0) == 0, "nobody is locked out for longer than a burst makes up for"


def test_addresses_that_come_and_go_fill_no_memory() -> None:
    counts = FailureCounts(per_s=1.0, burst=1)
    for number in range(failure_counts.MOST_ADDRESSES + 10):
        counts.failed(str(number), 0.0)
    assert counts.wait_s("0", 0.0) == 0, "the first are forgotten"
    assert counts.wait_s(str(failure_counts.MOST_ADDRESSES + 9), 0.0) > 0


async def test_an_address_of_the_old_kind_is_itself_however_it_is_written() -> None:
    """Behind a proxy, all of them would share one network of the new kind."""
    answers: dict[str, int] = {}

    async def refuses(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 403, "headers": []})

    async def ask(address: str) -> None:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answers[address] = message["status"]

        path = next(iter(PROVEN))
        await limited({"type": "http", "path": path, "method": "POST", "client": (address, 1)}, None, send)

    limited = FailedAttempts(refuses)
    for _ in range(failed_attempts.BURST + 1):
        await ask("::ffff:192.0.2.1")
    await ask("192.0.2.1")
    await ask("::ffff:192.0.2.2")
    assert answers == {"::ffff:192.0.2.1": 429, "192.0.2.1": 429, "::ffff:192.0.2.2": 403}


async def test_those_who_apply_count_whatever_the_answer_and_keep_nobody_from_joining() -> None:
    statuses: list[int] = []

    async def takes(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 202, "headers": []})

    async def ask(path: str) -> int:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        await limited({"type": "http", "path": path, "method": "POST", "client": ("192.0.2.1", 1)}, None, send)
        return statuses[-1]

    limited = FailedAttempts(takes)
    given = [await ask(APPLICANTS) for _ in range(failed_attempts.APPLICATIONS_AT_ONCE + 1)]
    assert given == [202] * failed_attempts.APPLICATIONS_AT_ONCE + [429]
    assert [await ask(path) for path in PROVEN] == [202] * len(PROVEN)


async def test_no_more_attempts_are_under_way_than_may_fail() -> None:
    go, inside, answers = asyncio.Event(), 0, list[int]()

    async def refuses(scope: Any, receive: Any, send: Any) -> None:
        nonlocal inside
        inside += 1
        await go.wait()
        await send({"type": "http.response.start", "status": 403, "headers": []})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answers.append(message["status"])

    async def ask() -> None:
        scope = {"type": "http", "path": next(iter(PROVEN)), "method": "POST", "client": ("192.0.2.1", 1)}
        await limited(scope, None, send)

    limited = FailedAttempts(refuses)
    asking = [asyncio.create_task(ask()) for _ in range(3 * failed_attempts.BURST)]
    for _ in asking:
        await asyncio.sleep(0)
    assert inside == failed_attempts.BURST
    go.set()
    await asyncio.gather(*asking)
    assert sorted(answers) == [403] * failed_attempts.BURST + [429] * 2 * failed_attempts.BURST
