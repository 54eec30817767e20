"""When a node is measured: once for each boot, version and machine, never while it is needed, and when asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ces_common.bus.port import Message, RemoteError
from ces_common.messages.scores import Measurement
from ces_edge_agent.scores import service
from ces_edge_agent.scores.process import Interrupted
from ces_edge_agent.scores.service import Scores

ASKED = Message(subject="ces.v1.rpc.agent.n.measure", data=b"")
FOUND = Measurement(kind="integer", rates=[1.0, 1.0], source="s")


class Node:
    """A node that is needed for something, or free; ``told`` counts new reports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.needed: str | None = None
        self.measured = self.told = 0
        self.pid: int | None = None
        self.ends = asyncio.Event()
        self.ends.set()

    async def measure(self, busy: Callable[[], str | None]) -> list[Measurement]:
        self.measured, self.pid = self.measured + 1, 7
        while not self.ends.is_set():
            if (why := busy()) is not None:
                self.pid = None
                raise Interrupted(why)
            await asyncio.sleep(0.001)
        self.pid = None
        return [FOUND]

    def scores(self, key: str = "boot", on: bool = True) -> Scores:
        def changed() -> None:
            self.told += 1

        return Scores("n", on, self.folder / "scores.json", key, self, lambda: self.needed, changed)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(service, "LOOK_S", 0.001)
    return Node(tmp_path)


@asynccontextmanager
async def running(scores: Scores) -> AsyncIterator[Callable[[Callable[[], bool]], Awaitable[None]]]:
    task = asyncio.create_task(scores.run())

    async def until(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    try:
        yield until
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_node_is_measured_once_and_the_next_agent_knows(node: Node) -> None:
    first = node.scores()
    assert first.report is None
    async with running(first) as until:
        await until(lambda: node.told == 1)
    assert first.report is not None
    assert first.report.measurements == [FOUND]
    again = node.scores()
    assert again.report == first.report
    async with running(again):
        await asyncio.sleep(0.02)
    assert node.measured == 1


@pytest.mark.parametrize("content", ["", "{}", '{"key": "boot", "report": {"node": "other", "measurements": []}}'])
async def test_what_cannot_be_read_or_is_anothers_is_measured_anew(node: Node, content: str) -> None:
    (node.folder / "scores.json").write_text(content)
    assert node.scores().report is None


async def test_another_boot_or_machine_is_measured_anew(node: Node) -> None:
    async with running(node.scores()) as until:
        await until(lambda: node.told == 1)
    async with running(node.scores(key="another")) as until:
        await until(lambda: node.told == 2)
    assert node.measured == 2


async def test_it_waits_until_the_node_is_free(node: Node) -> None:
    node.needed = "workers run there"
    async with running(node.scores()) as until:
        await asyncio.sleep(0.02)
        assert node.measured == 0
        node.needed = None
        await until(lambda: node.told == 1)


async def test_it_gives_way_and_tries_again_later(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "AGAIN_S", 0.01)
    node.ends.clear()
    scores = node.scores()
    async with running(scores) as until:
        await until(lambda: scores.pids == [7])
        node.needed = "its owner has the device"
        await until(lambda: scores.pids == [])
        node.ends.set()
        node.needed = None
        await until(lambda: node.told == 1)


async def test_it_is_measured_again_when_asked_and_says_why_not(node: Node) -> None:
    scores = node.scores()
    async with running(scores) as until:
        await until(lambda: node.told == 1)
        node.needed = "workers run there"
        with pytest.raises(RemoteError, match="workers run there"):
            await scores.answer(ASKED)
        node.needed = None
        node.ends.clear()
        assert await scores.answer(ASKED) == b""
        await until(lambda: node.measured == 2)
        with pytest.raises(RemoteError, match="measures already"):
            await scores.answer(ASKED)
        node.ends.set()
        await until(lambda: node.told == 2)


async def test_whoever_asks_after_a_failure_need_not_wait(node: Node) -> None:
    node.ends.clear()
    scores = node.scores()
    async with running(scores) as until:
        await until(lambda: node.measured == 1)
        node.needed = "workers run there"
        await until(lambda: scores.pids == [])
        node.needed = None
        node.ends.set()
        await asyncio.sleep(0.02)
        assert node.measured == 1, "a minute has not passed"
        await scores.answer(ASKED)
        await until(lambda: node.told == 1)


async def test_where_it_is_off_nothing_is_measured_or_told(node: Node) -> None:
    async with running(node.scores()) as until:
        await until(lambda: node.told == 1)
    off = node.scores(on=False)
    await off.run()
    assert (off.report, node.measured) == (None, 1)
    with pytest.raises(RemoteError, match="CES_MEASURE=false"):
        await off.answer(ASKED)
