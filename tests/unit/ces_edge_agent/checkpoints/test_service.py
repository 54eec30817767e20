"""What is packed, and when; and the copies of it on another node."""

from __future__ import annotations

import asyncio
import http.client
from http import HTTPStatus
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pytest
from checkpoint_nodes import INTERVAL_S, ME, Node, copied, held, packed, restored, writer
from structlog.testing import capture_logs
from waiting import until

from ces_common.messages.desired import (
    CheckpointSource,
    DesiredCopy,
)
from ces_edge_agent.checkpoints import service, shelf, signed
from ces_edge_agent.checkpoints.archive import Packed
from ces_edge_agent.checkpoints.download import NotFetched, allowed_s
from ces_edge_agent.checkpoints.sendings import SETTLE_S
from ces_edge_agent.checkpoints.service import RETRY_S
from ces_edge_agent.ports import RuntimeUnavailable


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


async def test_what_lies_there_from_earlier_is_not_packed_before_one_is_fetched(second: Node) -> None:
    second.want(writer(attempt=2, restore=True), folders=["j"])
    await second.look()
    second.writes("stale")
    await second.look(INTERVAL_S)
    assert second.checkpoints.report.packed == []


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
