"""Hints, and loops that live and die together."""

import asyncio
import gc
import json
import sys

import pytest
from pydantic import Field

from ces_common.service import COLLECT_AFTER, Hint, run_loops, run_service
from ces_common.settings import ServiceSettings


async def test_hints_before_the_wait_count_once() -> None:
    hint = Hint()
    hint.set()
    hint.set()
    assert await hint.wait(60)
    assert not await hint.wait(0)


async def test_a_hint_ends_the_wait() -> None:
    hint = Hint()
    waiting = asyncio.create_task(hint.wait(60))
    await asyncio.sleep(0)
    hint.set()
    assert await waiting


async def test_a_hint_that_comes_with_the_timeout_is_not_lost() -> None:
    """Whenever it is set: either this wait tells of it or the next one does."""
    for turns in range(8):
        hint = Hint()

        async def late(hint: Hint = hint, turns: int = turns) -> None:
            for _ in range(turns):
                await asyncio.sleep(0)
            hint.set()

        heard, _ = await asyncio.gather(hint.wait(0), late())
        assert heard or await hint.wait(0)


async def test_a_hint_survives_a_cancelled_wait() -> None:
    hint = Hint()
    waiting = asyncio.create_task(hint.wait(60))
    await asyncio.sleep(0)
    hint.set()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await hint.wait(0)


async def forever(ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("ended")


async def test_stop_ends_all_loops() -> None:
    stop, ended = asyncio.Event(), list[str]()
    running = asyncio.create_task(run_loops(stop, forever(ended), forever(ended)))
    await asyncio.sleep(0)
    stop.set()
    await running
    assert len(ended) == 2


async def test_a_loops_failure_ends_the_others_and_is_raised() -> None:
    ended: list[str] = []

    async def fails() -> None:
        await asyncio.sleep(0)
        raise RuntimeError("unforeseen")

    with pytest.raises(RuntimeError, match="unforeseen"):
        await run_loops(asyncio.Event(), forever(ended), fails())
    assert ended == ["ended"]


def test_a_service_says_which_settings_it_reads_and_what_is_wrong_and_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main(settings: ServiceSettings, stop: asyncio.Event) -> None:
        raise AssertionError("it was started")

    class Settings(ServiceSettings):
        token_file: str  # what is missing is no fault of whoever only asks
        derived: str = Field(default_factory=lambda data: data["token_file"])  # nor is what follows from that

    monkeypatch.setattr(sys, "argv", ["ces_any", "--settings"])
    monkeypatch.setenv("CES_RESYNC_S", "-1")
    run_service("any", Settings, main)
    told = json.loads(capsys.readouterr().out)
    assert {"CES_TOKEN_FILE", "CES_RESYNC_S", "CES_LOG_LEVEL"} <= set(told["settings"])
    assert told["wrong"] == ["CES_RESYNC_S: must be more than 0"]


def test_a_service_seldom_looks_for_garbage_in_what_lives_long(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[int, int, bool]] = []

    async def main(settings: ServiceSettings, stop: asyncio.Event) -> None:
        found.append((gc.get_threshold()[0], gc.get_freeze_count(), gc.isenabled()))

    monkeypatch.setattr(sys, "argv", ["ces_any"])
    monkeypatch.setattr("ces_common.service.configure_logging", lambda *_: None)
    before = gc.get_threshold()
    gc.disable()
    try:
        run_service("any", ServiceSettings, main)
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
        gc.enable()
    ((threshold, frozen, looks),) = found
    assert looks
    assert threshold == COLLECT_AFTER > before[0]
    assert frozen > 0
