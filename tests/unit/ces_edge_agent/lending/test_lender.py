"""The lender: what follows from looks and commands, and what an agent that starts again knows."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from agent_parts import FakeTime
from structlog.testing import capture_logs

from ces_common.bus.port import Message, RemoteError
from ces_edge_agent.lending import command, lender, record
from ces_edge_agent.lending.decision import LONGEST_GRACE_S, Look, Rules, Standing
from ces_edge_agent.lending.lender import Lender, NotLent
from ces_edge_agent.lending.owner_load import OwnerLoad
from ces_edge_agent.settings import AgentSettings

RULES = Rules()


class TestedLoad(OwnerLoad):
    """An owner whose programs use as much as is said here; a quarter of a second passes with each look."""

    __test__ = False

    def __init__(self, time: FakeTime) -> None:
        super().__init__(roots={})
        self._time, self.others, self.short = time, 0.0, False

    def look(self, now: float, workers: Collection[int]) -> Look | None:
        self._time.passes(0.25)
        return Look(now, now + 0.25, self.others, self.short)


class Device:
    def __init__(self, folder: Path) -> None:
        self.folder, self.time = folder, FakeTime()
        self.load = TestedLoad(self.time)
        self.told: list[str] = []

    def agent(self) -> Lender:
        return Lender(
            RULES,
            self.folder,
            self.time.clocks(),
            self.load,
            lambda: [],
            self._reclaimed,
            lambda: self.told.append("-"),
        )

    async def _reclaimed(self) -> None:
        self.told.append("freeze")
        await self.freezes()

    async def freezes(self) -> None:
        """What tests have happen during a freeze."""

    def kept(self) -> Standing:
        """How things stand for an agent that starts now."""
        return record.load(record.record_file(self.folder), RULES, self.time.boot, 0.0)


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Device:
    monkeypatch.setattr(lender, "LOOK_S", 0.001)
    monkeypatch.setattr(lender, "COMMAND_S", 0.001)
    return Device(tmp_path)


async def runs(agent: Lender, until: Callable[[], bool]) -> None:
    task = asyncio.create_task(agent.run())
    try:
        async with asyncio.timeout(60):
            while not until():
                assert not task.done(), task.exception()
                await asyncio.sleep(0.001)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def lent(device: Device) -> Lender:
    agent = device.agent()
    await runs(agent, lambda: agent.lent)
    device.told.clear()
    return agent


async def test_it_lends_to_the_quiet_and_gives_back_at_once(device: Device) -> None:
    agent = device.agent()
    assert not agent.lent
    await runs(agent, lambda: agent.lent)
    assert agent.left_s() == math.inf
    assert device.told == ["-"]
    device.load.others = 1.0
    await runs(agent, lambda: not agent.lent)
    assert device.told == ["-", "freeze", "-"]
    assert 0 < agent.left_s() <= LONGEST_GRACE_S


async def test_short_memory_leaves_no_time(device: Device) -> None:
    agent = await lent(device)
    device.load.short = True
    await runs(agent, lambda: agent.left_s() == 0)
    await asyncio.wait_for(agent.over(), 60)


async def test_the_owners_word_holds_over_restarts_until_it_is_taken_back(device: Device) -> None:
    agent = await lent(device)
    await agent.say("reclaim")
    assert not agent.lent
    began = device.time.steady
    again = device.agent()
    await runs(again, lambda: device.time.steady > began + 2 * RULES.quiet_s)
    assert not again.lent
    command.give(device.folder, "lend")
    await runs(again, lambda: again.lent)
    assert command.given(device.folder) is None, "it is obeyed once"


async def test_an_agent_that_starts_again_goes_on_lending_and_after_a_boot_it_asks_first(device: Device) -> None:
    agent = await lent(device)
    device.load.others = 1.0
    await runs(agent, lambda: not agent.lent)
    device.load.others = 0.0
    await runs(agent, lambda: agent.lent)
    assert device.agent().lent
    device.time.reboot(10)
    assert not device.agent().lent
    assert device.kept().quiet_s == 2 * RULES.quiet_s, "it is not forgotten"


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"boot": "first", "lent": true, "quiet_s": "x"}'])
async def test_a_record_that_cannot_be_read_is_as_none(device: Device, content: str) -> None:
    record.record_file(device.folder).write_text(content)
    agent = device.agent()
    assert not agent.lent


async def test_one_that_cannot_measure_still_obeys(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await lent(device)

    def fails(*_: object) -> Look:
        raise OSError("no /proc")

    monkeypatch.setattr(device.load, "look", fails)
    command.give(device.folder, "reclaim")
    await runs(agent, lambda: not agent.lent)


async def test_a_word_that_cannot_be_read_is_told_of_once(device: Device) -> None:
    agent = await lent(device)
    command.command_file(device.folder).mkdir()
    began = device.time.steady
    with capture_logs() as told:
        await runs(agent, lambda: device.time.steady > began + 5.0)
    assert [each["event"] for each in told] == ["the owner's word cannot be read"]


async def test_a_reclaim_that_is_said_while_a_loan_is_noted_stands(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await lent(device)
    await agent.say("reclaim")
    monkeypatch.setattr(agent, "_changed", lambda: command.give(device.folder, "reclaim"))
    await agent.say("lend")
    assert command.given(device.folder) == "reclaim"
    await runs(agent, lambda: not agent.lent)


async def test_a_loan_that_cannot_be_crossed_out_is_obeyed_once(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Path) -> None:
        raise OSError("read-only file system")

    agent = await lent(device)
    await agent.say("reclaim")
    monkeypatch.setattr(command, "forget", fails)
    await agent.say("lend")
    device.load.others = 1.0
    began = device.time.steady
    await runs(agent, lambda: device.time.steady > began + 5.0)
    assert device.told.count("freeze") == 2, "by word and by load, and not again and again"


async def test_a_word_is_no_word_to_an_agent_that_does_not_lend(device: Device) -> None:
    command.give(device.folder, "reclaim")
    settings = AgentSettings(node="n", state_dir=device.folder)
    made = lender.make(settings, device.time.clocks(), list, device.freezes, lambda: None)
    assert made.lent
    assert command.given(device.folder) is None, "nor to one that lends later"


async def test_a_device_that_is_not_lent_says_so() -> None:
    with pytest.raises(RemoteError, match="CES_LENT=true"):
        await lender.answer(NotLent(), "reclaim", Message(subject="s", data=b""))


async def test_a_word_that_cannot_be_kept_is_refused(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await lent(device)

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(command, "give", full)
    with pytest.raises(RemoteError, match="no space left"):
        await lender.answer(agent, "reclaim", Message(subject="s", data=b""))


async def test_a_freeze_that_fails_ends_no_agent(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails() -> None:
        raise OSError("too many open files")

    agent = await lent(device)
    monkeypatch.setattr(device, "freezes", fails)
    device.load.others = 1.0
    await runs(agent, lambda: not agent.lent)
    assert device.told == ["freeze", "-"]
    assert not device.kept().lent


async def test_a_loan_during_a_freeze_is_what_a_restart_knows(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await lent(device)
    monkeypatch.setattr(device, "freezes", lambda: agent.say("lend"))
    await agent.say("reclaim")
    assert agent.lent
    assert device.kept().lent


async def test_short_memory_is_known_before_anything_is_frozen(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    left_s = list[float]()

    async def looks() -> None:
        left_s.append(agent.left_s())

    agent = await lent(device)
    monkeypatch.setattr(device, "freezes", looks)
    device.load.short = True
    await runs(agent, lambda: not agent.lent)
    assert left_s == [0.0]
