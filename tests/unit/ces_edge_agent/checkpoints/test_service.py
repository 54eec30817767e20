"""Two agents, one of which copies and fetches what the other has packed, over a real connection."""

from __future__ import annotations

import asyncio
import http.client
import socket
import tarfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pytest
from agent_parts import worker
from fake_runtime import FakeRuntime
from structlog.testing import capture_logs

from ces_common.messages.checkpoints import Checkpoint
from ces_common.messages.desired import (
    CheckpointReader,
    CheckpointSource,
    DesiredCompute,
    DesiredCopy,
    DesiredNetwork,
    DesiredWorker,
)
from ces_common.natsauth.keys import Kind, new_seed, public_key
from ces_edge_agent.checkpoints import beginnings, fetcher, service, shelf, signed
from ces_edge_agent.checkpoints.archive import Packed
from ces_edge_agent.checkpoints.fetching import NotFetched, allowed_s
from ces_edge_agent.checkpoints.sendings import SETTLE_S
from ces_edge_agent.checkpoints.service import RETRY_S, Checkpoints
from ces_edge_agent.checkpoints.shelf import Shelf
from ces_edge_agent.dataplane.none import NoNetwork
from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.inputs.service import InputService
from ces_edge_agent.ports import RuntimeUnavailable

ME = "127.0.0.1"
INTERVAL_S = 60.0


class Node:
    """The part of an agent that is concerned with checkpoints. ``writes``: what the job's worker there last wrote."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.seed = name, folder / name, new_seed(Kind.USER)
        self.folder.mkdir()
        self.lent = True
        self.runtime, self.network = FakeRuntime(self.folder), NoNetwork(name)
        self.compute = StoredDocument(self.folder / "compute.json", DesiredCompute, name)
        self.networks = StoredDocument(self.folder / "network.json", DesiredNetwork, name)
        self.shelf, self.generation, self.now, self.changes = Shelf(self.folder / "copies"), 0, 0.0, 0
        self.checkpoints = Checkpoints(
            name,
            self.seed,
            self.runtime,
            self.network,
            self.shelf,
            self.compute,
            self.networks,
            INTERVAL_S,
            2**20,
            lambda: self.lent,
            self._changed,
        )
        self.fetcher = fetcher.Fetcher(name, self.seed, self.network, self.networks, self.shelf, 2**20)
        self.inputs = InputService(name, None, self.network, ME, self.folder / "port", self.checkpoints)

    def _changed(self) -> None:
        self.changes += 1

    def writes(self, text: str) -> None:
        self.runtime.host.checkpoints["j"] = text

    @property
    def has(self) -> str | None:
        return self.runtime.host.checkpoints.get("j")

    async def serve(self, *readers: Node, owner: str = "j", newest: bool = True) -> str:
        """Have these nodes fetch checkpoints of the job here; returns where."""
        known = [
            CheckpointReader(
                job="j.1", owner=owner, node=each.name, address=ME, key=public_key(each.seed), newest=newest
            )
            for each in readers
        ]
        desired = DesiredNetwork(node=self.name, generation=1, mode="none", checkpoint_readers=known)
        assert await self.inputs.follow(desired) == {}
        report = await self.inputs.report()
        assert report is not None
        return f"http://{ME}:{report.port}/.checkpoints/j"

    def want(self, *workers: DesiredWorker, copies: list[DesiredCopy] | None = None, folders: list[str]) -> None:
        self.generation += 1
        document = DesiredCompute(
            node=self.name,
            generation=self.generation,
            workers=list(workers),
            checkpoints=folders,
            copies=copies or [],
        )
        assert self.compute.offer(document.encode())

    async def look(self, after_s: float = 0.0) -> None:
        self.now += after_s
        await self.checkpoints.step(self.now)


@pytest.fixture
async def first(tmp_path: Path) -> AsyncIterator[Node]:
    made = Node("first", tmp_path)
    yield made
    made.inputs.close()


@pytest.fixture
async def second(tmp_path: Path) -> AsyncIterator[Node]:
    made = Node("second", tmp_path)
    yield made
    made.inputs.close()


def writer(**fields: object) -> DesiredWorker:
    return worker("w", job="j", checkpoint=True, **fields)


async def packed(node: Node, text: str) -> Checkpoint:
    """What the node says that it has packed once its worker has written this."""
    await node.look()
    node.writes(text)
    await node.look(INTERVAL_S)
    await node.look(SETTLE_S)
    (said,) = node.checkpoints.report.packed
    assert (said.job, said.checkpoint.name) == ("j", text)
    return said.checkpoint


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what it waits for happens in a thread
            await asyncio.sleep(0.01)


def held(node: Node) -> list[str]:
    return [digest for each in node.checkpoints.report.held for digest in each.digests]


async def copied(node: Node, checkpoint: Checkpoint, url: str) -> None:
    source = CheckpointSource(node="first", url=url, checkpoint=checkpoint)
    node.want(copies=[DesiredCopy(job="j", checkpoint=checkpoint, source=source)], folders=[])
    await node.look(RETRY_S)
    await until(lambda: not node.checkpoints.copying)
    await node.look()


async def test_a_new_checkpoint_is_packed_once_an_interval(first: Node) -> None:
    first.want(writer(), folders=["j"])
    first.writes("one")
    await first.look()
    assert first.checkpoints.report.packed == []
    one = await packed(first, "one")
    changes = first.changes
    await first.look(INTERVAL_S)
    assert first.changes == changes, "it is the same"
    two = await packed(first, "two")
    assert (one.writer, two.writer) == ((1, 1), (1, 1))
    assert one.digest != two.digest
    await packed(first, "three")
    assert [each.name for each in first.shelf.all("j")] == ["three", "two"]


async def test_none_is_packed_while_another_node_fetches_the_last_one(first: Node) -> None:
    """Else a slow link would never bring one: the newest counts, and the one before it is wanted no longer."""
    first.want(writer(), folders=["j"])
    one = await packed(first, "one")
    with first.checkpoints.serve("j", one.digest, "second"):
        first.writes("two")
        await first.look(INTERVAL_S)
        await first.look(INTERVAL_S / 2)
        assert first.checkpoints.report.packed[0].checkpoint == one
    await first.look(1)
    assert first.checkpoints.report.packed[0].checkpoint == one, "who has it has not said so yet"
    await first.look(SETTLE_S)
    assert first.checkpoints.report.packed[0].checkpoint.name == "two"


async def test_who_fetches_for_ever_holds_up_none_for_ever(first: Node) -> None:
    first.want(writer(), folders=["j"])
    one = await packed(first, "one")
    with first.checkpoints.serve("j", one.digest, "second"):
        first.writes("two")
        await first.look(INTERVAL_S)
        assert first.checkpoints.report.packed[0].checkpoint == one
        await first.look(allowed_s(one.size))
        assert first.checkpoints.report.packed[0].checkpoint.name == "two"


async def test_it_is_copied_whole_and_goes_when_nobody_counts_on_it(first: Node, second: Node) -> None:
    first.want(writer(), folders=["j"])
    checkpoint = await packed(first, "one")
    await copied(second, checkpoint, await first.serve(second))
    assert held(second) == [checkpoint.digest]
    assert second.shelf.all("j") == [checkpoint]
    second.want(folders=[])
    await second.look()
    assert second.shelf.jobs() == []


async def test_one_with_another_digest_is_not_kept(first: Node, second: Node) -> None:
    first.want(writer(), folders=["j"])
    checkpoint = await packed(first, "one")
    archive = first.folder / "copies" / "j" / checkpoint.digest
    archive.write_bytes(b"x" * archive.stat().st_size)
    await copied(second, checkpoint, await first.serve(second))
    assert (held(second), second.shelf.all("j")) == ([], [])


async def test_who_is_no_reader_of_this_job_gets_nothing(first: Node, second: Node, tmp_path: Path) -> None:
    first.want(writer(), folders=["j"])
    checkpoint = await packed(first, "one")
    await copied(second, checkpoint, await first.serve(second, owner="other"))
    assert held(second) == []
    third = Node("third", tmp_path)  # at the same address, as with network none
    await copied(second, checkpoint, await first.serve(third))
    third.inputs.close()
    assert held(second) == []


async def test_a_late_writers_checkpoint_replaces_no_newer_copy(first: Node, second: Node) -> None:
    first.want(writer(attempt=2), folders=["j"])
    newer = await packed(first, "newer")
    await copied(second, newer, await first.serve(second))
    first.shelf.keep({})
    first.want(writer(attempt=1), folders=["j"])
    late = await packed(first, "late")
    assert late.writer < newer.writer
    source = CheckpointSource(node="first", url=await first.serve(second), checkpoint=late)
    copies = [DesiredCopy(job="j", checkpoint=newer), DesiredCopy(job="j", checkpoint=late, source=source)]
    second.want(copies=copies, folders=[])
    await second.look(RETRY_S)
    await until(lambda: not second.checkpoints.copying)
    await second.look()
    assert second.shelf.all("j") == [newer]


async def restored(node: Node, *sources: CheckpointSource) -> tuple[str | None, str | None, str | None]:
    """The checkpoint that a worker begins from on that node, where it was had, and what went wrong before."""
    beginner = writer(attempt=2, restore=True, checkpoints=list(sources))
    node.want(beginner, folders=["j"])
    archive = await node.checkpoints.restore(beginner, lambda: True)
    found = None
    if archive is not None:
        with archive, tarfile.open(fileobj=archive) as opened:
            found = opened.getnames()[0]
    await node.look()
    (begun,) = node.checkpoints.report.begun
    assert (begun.job, begun.attempt, begun.incarnation, begun.name) == ("j", 2, 1, found)
    return found, begun.source, begun.reason


async def test_the_newest_is_fetched_from_where_the_job_was(first: Node, second: Node) -> None:
    first.want(writer(), folders=["j"])
    await packed(first, "one")
    first.writes("last")  # as it was told to end
    first.want(folders=["j"])
    url = await first.serve(second)
    assert await restored(second, CheckpointSource(node="first", url=url)) == ("last", "first", None)


async def test_where_that_fails_the_next_copy_counts(first: Node, second: Node) -> None:
    """Its own, of which nothing has to be fetched."""
    first.want(writer(), folders=["j"])
    checkpoint = await packed(first, "one")
    url = await first.serve(second)
    await copied(second, checkpoint, url)
    second.want(copies=[DesiredCopy(job="j", checkpoint=checkpoint)], folders=["j"])
    first.runtime.host.checkpoints.clear()
    first.shelf.keep({})
    own = CheckpointSource(node="second", url="", checkpoint=checkpoint)
    found, source, reason = await restored(second, CheckpointSource(node="first", url=url), own)
    assert (found, source) == ("one", "second")
    assert reason is not None
    assert "the job has written no checkpoint here" in reason


async def test_a_copy_that_was_changed_is_not_begun_from(first: Node, second: Node) -> None:
    first.want(writer(), folders=["j"])
    checkpoint = await packed(first, "one")
    await copied(second, checkpoint, await first.serve(second))
    (second.folder / "copies" / "j" / checkpoint.digest).write_bytes(b"forged")
    own = CheckpointSource(node="second", url="", checkpoint=checkpoint)
    assert await restored(second, own) == (None, None, "second: its own copy has another digest")


async def test_what_lies_there_from_earlier_is_not_packed_before_one_is_fetched(second: Node) -> None:
    second.want(writer(attempt=2, restore=True), folders=["j"])
    await second.look()
    second.writes("stale")
    await second.look(INTERVAL_S)
    assert second.checkpoints.report.packed == []


async def test_with_no_copy_at_all_it_begins_with_nothing_and_says_so(second: Node) -> None:
    assert await restored(second) == (None, None, "no node has a copy of its checkpoints")


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beginnings, "PATIENCE_S", 0.0)
    monkeypatch.setattr(beginnings, "LONGEST_PAUSE_S", 0.0)


@pytest.mark.usefixtures("hasty")
async def test_it_does_not_begin_with_nothing_where_its_checkpoint_is_to_be_had_later(
    first: Node, second: Node
) -> None:
    """What lies where it was goes once it has begun."""
    first.want(writer(), folders=["j"])
    await packed(first, "one")
    url = await first.serve(second)
    beginner = writer(attempt=2, restore=True, checkpoints=[CheckpointSource(node="first", url=url)])
    second.want(beginner, folders=["j"])
    first.runtime.available = False
    with pytest.raises(RuntimeUnavailable, match=r"first: it answers 503: .* the fake runtime is set to be away"):
        await second.checkpoints.restore(beginner, lambda: True)
    first.runtime.available = True
    (second.folder / "copies").rmdir()
    (second.folder / "copies").write_text("no folder")
    with pytest.raises(RuntimeUnavailable, match=r"first: .*File exists"):
        await second.checkpoints.restore(beginner, lambda: True)
    (second.folder / "copies").unlink()
    down = CheckpointSource(node="first", url=f"http://{ME}:1/.checkpoints/j")
    with pytest.raises(RuntimeUnavailable, match=r"first: .*refused"):
        await second.checkpoints.restore(beginner.model_copy(update={"checkpoints": [down]}), lambda: True)
    assert second.checkpoints.report.begun == []
    assert await restored(second, CheckpointSource(node="first", url=url)) == ("one", "first", None)


async def test_what_takes_long_to_pack_is_packed_less_often(first: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    first.want(writer(), folders=["j"])
    await packed(first, "one")
    clock = [0.0]
    pack = first.runtime.pack_checkpoint

    async def slowly(job: str, into: IO[bytes], limit: int, seen: str | None) -> Packed | None:
        clock[0] += INTERVAL_S
        return await pack(job, into, limit, seen)

    monkeypatch.setattr(service, "monotonic", lambda: clock[0])
    monkeypatch.setattr(first.runtime, "pack_checkpoint", slowly)
    await packed(first, "two")
    first.writes("three")
    for _ in range(9):
        await first.look(INTERVAL_S)
    assert first.checkpoints.report.packed[0].checkpoint.name == "two"
    await packed(first, "three")


async def test_a_worker_that_starts_again_and_again_has_its_checkpoints_packed(first: Node) -> None:
    first.writes("one")
    for incarnation in range(1, 4):
        first.want(writer(incarnation=incarnation), folders=["j"])
        await first.look(INTERVAL_S / 3)
        first.want(folders=["j"])
        await first.look(INTERVAL_S / 3)
    first.want(writer(incarnation=4), folders=["j"])
    await first.look()
    assert first.checkpoints.report.packed[0].checkpoint.name == "one"


async def test_a_disk_that_takes_no_folder_ends_no_agent(first: Node) -> None:
    (first.folder / "copies").write_text("no folder")
    running = asyncio.create_task(first.checkpoints.run())
    with capture_logs() as told:
        await until(lambda: bool(told) or running.done())
    assert not running.done()
    (first.folder / "copies").unlink()
    await until((first.folder / "copies").is_dir)
    running.cancel()


async def test_nothing_is_packed_or_copied_while_the_devices_owner_has_it_back(first: Node, second: Node) -> None:
    first.want(writer(), folders=["j"])
    one = await packed(first, "one")
    url = await first.serve(second)
    first.writes("two")
    first.lent = second.lent = False
    await first.look(INTERVAL_S)
    await copied(second, one, url)
    assert first.checkpoints.report.packed[0].checkpoint == one
    assert held(second) == []
    assert await restored(second, CheckpointSource(node="first", url=url)) == ("two", "first", None)
    first.lent = second.lent = True
    three = await packed(first, "three")
    await copied(second, three, url)
    assert held(second) == [three.digest]


async def test_who_holds_copies_has_none_packed(first: Node, second: Node) -> None:
    first.want(writer(), folders=["j"])
    checkpoint = await packed(first, "one")
    url = await first.serve(second, newest=False)
    await copied(second, checkpoint, url)
    assert held(second) == [checkpoint.digest]
    with pytest.raises(NotFetched, match="it answers 403"), second.shelf.blank() as file:
        await second.fetcher.fetch("j", CheckpointSource(node="first", url=url), file, lambda: True)


async def test_the_newest_is_packed_once_for_all_who_ask(first: Node, second: Node) -> None:
    first.want(folders=["j"])
    await first.look()
    first.writes("last")
    source = CheckpointSource(node="first", url=await first.serve(second))
    for _ in range(3):
        assert await restored(second, source) == ("last", "first", None)
        (kept,) = first.shelf.all("j")
        assert kept.name == "last"
    assert first.runtime.packs == 1
    request = http.client.HTTPConnection(ME, urlsplit(source.url).port)
    request.request("HEAD", "/.checkpoints/j", headers=signed.headers(second.seed, "second", "first", "j", ""))
    answer = await asyncio.to_thread(request.getresponse)
    assert answer.status == HTTPStatus.METHOD_NOT_ALLOWED
    request.close()


@pytest.mark.usefixtures("hasty")
async def test_a_disk_that_is_almost_full_takes_none(
    first: Node, second: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent's own records need some of it."""
    first.want(writer(), folders=["j"])
    checkpoint = await packed(first, "one")
    source = CheckpointSource(node="first", url=await first.serve(second))
    monkeypatch.setattr(shelf, "LEFT_FREE", 2**60)
    await copied(second, checkpoint, source.url)
    assert held(second) == []
    with pytest.raises(RuntimeUnavailable, match="no room"):
        await second.checkpoints.restore(writer(restore=True, checkpoints=[source]), lambda: True)
    first.writes("two")
    await first.look(INTERVAL_S)
    await first.look(SETTLE_S)
    assert [each.name for each in first.shelf.all("j")] == ["one"]


@pytest.mark.usefixtures("hasty")
async def test_one_that_is_too_large_for_the_room_there_is_now_may_be_had_later(
    first: Node, second: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.want(folders=["j"])
    await first.look()
    first.writes("last")
    url = await first.serve(second)
    monkeypatch.setattr(first.shelf, "room", lambda: 3)
    beginner = writer(restore=True, checkpoints=[CheckpointSource(node="first", url=url)])
    with pytest.raises(RuntimeUnavailable, match=r"it answers 503: .*no room"):
        await second.checkpoints.restore(beginner, lambda: True)


@pytest.fixture
def mute() -> Iterator[str]:
    """Where a node takes connections and does not answer."""
    with socket.create_server((ME, 0)) as listener:
        yield f"http://{ME}:{listener.getsockname()[1]}/.checkpoints/j"


async def test_who_does_not_answer_holds_up_nobody_that_is_not_to_start(second: Node, mute: str) -> None:
    wanted = [True, True]  # then no longer
    beginner = writer(restore=True, checkpoints=[CheckpointSource(node="first", url=mute)])
    async with asyncio.timeout(30):
        assert await second.checkpoints.restore(beginner, lambda: bool(wanted and wanted.pop())) is None
    await until(lambda: not [each for each in threading.enumerate() if each.name == "ces-checkpoint"])


@pytest.mark.usefixtures("hasty")
async def test_who_does_not_answer_is_asked_once(second: Node, mute: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "PACKING_S", 0.0)
    copy = Checkpoint(attempt=1, incarnation=1, name="one", size=9, digest="1" * 64)
    sources = [CheckpointSource(node="first", url=mute, checkpoint=each) for each in (None, copy)]
    with pytest.raises(RuntimeUnavailable, match=r"had now: first: it does not answer$"):
        await second.checkpoints.restore(writer(restore=True, checkpoints=sources), lambda: True)


async def test_a_worker_that_is_to_start_no_longer_begins_from_nothing(second: Node) -> None:
    source = CheckpointSource(node="first", url="http://127.0.0.1:1/.checkpoints/j")
    assert await second.checkpoints.restore(writer(restore=True, checkpoints=[source]), lambda: False) is None
    assert second.checkpoints.report.begun == []
