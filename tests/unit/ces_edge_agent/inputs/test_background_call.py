"""A disk that never answers, and a machine without a thread to spare: neither may hold up the agent, nor its end."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agent_parts import FakeNetwork

from ces_common.messages.desired import DesiredNetwork, Reader
from ces_common.messages.reports import DataReport
from ces_edge_agent.inputs import service as service_module
from ces_edge_agent.inputs.service import InputService
from ces_edge_agent.inputs.store import Store

ME = "127.0.0.1"
PATIENCE_S = 60.0
DESIRED = DesiredNetwork(node="n", generation=1, mode="none", readers=[Reader(job="j.1", address=ME, datasets=[])])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "datasets" / "words").mkdir(parents=True)
    (tmp_path / "datasets" / "words" / "list").write_text("one two")
    return tmp_path / "datasets"


@pytest.fixture
def service(root: Path, tmp_path: Path) -> Iterator[InputService]:
    service = InputService("n", root, FakeNetwork(), "192.0.2.1", tmp_path / "data-port")
    yield service
    service.close()


class Disk:
    """Looking at the datasets hangs until the disk is ``back``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.back = threading.Event()
        self.looks = 0
        names = Store.names

        def hanging(store: Store) -> list[str]:
            self.looks += 1
            self.back.wait()
            return names(store)

        monkeypatch.setattr(Store, "names", hanging)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(monkeypatch)
    yield disk
    disk.back.set()


async def told(service: InputService) -> DataReport:
    report = await service.report()
    assert report is not None
    return report


async def test_of_a_disk_that_hangs_nothing_is_offered_until_it_is_back(
    disk: Disk, service: InputService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "LIST_S", 0.05)
    assert await service.follow(DESIRED) == {}
    before = await told(service)
    assert (before.port > 0, before.datasets) == (True, []), "workers find it there once the disk is back"
    assert await told(service) == before
    assert disk.looks == 1, "one thread hangs, and no second for the same"
    disk.back.set()
    async with asyncio.timeout(PATIENCE_S):
        while (after := await told(service)).datasets != ["words"]:
            pass
    assert after.port == before.port


def test_an_agent_ends_while_its_disk_hangs(disk: Disk, service: InputService) -> None:
    async def agent() -> None:
        await service.follow(DESIRED)
        report = asyncio.create_task(told(service))
        while not disk.looks:  # noqa: ASYNC110 - the thread that looks sets no event of this loop
            await asyncio.sleep(0.01)
        report.cancel()
        await asyncio.gather(report, return_exceptions=True)

    running = threading.Thread(target=asyncio.run, args=(agent(),), daemon=True)
    running.start()
    running.join(PATIENCE_S)
    assert not running.is_alive()
    assert not disk.back.is_set()


@contextmanager
def no_thread_for(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as none_left:
        none_left.setattr(threading.Thread, "start", refuse)
        yield


async def test_data_that_no_thread_could_be_had_for_is_served_once_there_is_one(
    service: InputService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with no_thread_for("ces-inputs", monkeypatch):
        assert await service.follow(DESIRED) == {"j.1": "data cannot be served: can't start new thread"}
        assert (await told(service)).datasets == []
    assert not (tmp_path / "data-port").exists(), "a port at which nobody answers is not kept"
    assert await service.follow(DESIRED) == {}
    report = await told(service)
    assert report.datasets == ["words"]
    connection = http.client.HTTPConnection(ME, report.port, timeout=PATIENCE_S)
    connection.request("GET", "/words/list")
    assert connection.getresponse().read() == b"one two"
    connection.close()


async def test_where_no_thread_can_be_had_to_look_nothing_is_offered(
    service: InputService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.follow(DESIRED)
    with no_thread_for("ces-datasets", monkeypatch):
        assert (await told(service)).datasets == []
    assert (await told(service)).datasets == ["words"]
