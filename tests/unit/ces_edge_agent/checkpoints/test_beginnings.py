"""From which checkpoint a worker begins on a node where it was not before."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest
from checkpoint_nodes import ME, Node, copied, packed, restored, writer
from waiting import until

from ces_common.messages.checkpoints import Checkpoint
from ces_common.messages.desired import (
    CheckpointSource,
    DesiredCopy,
)
from ces_edge_agent.checkpoints import fetcher
from ces_edge_agent.ports import RuntimeUnavailable


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


async def test_with_no_copy_at_all_it_begins_with_nothing_and_says_so(second: Node) -> None:
    assert await restored(second) == (None, None, "no node has a copy of its checkpoints")


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


@pytest.mark.usefixtures("hasty")
async def test_who_does_not_answer_holds_up_nobody_that_is_not_to_start(second: Node, mute: str) -> None:
    wanted = [True, True]  # then no longer
    beginner = writer(restore=True, checkpoints=[CheckpointSource(node="first", url=mute)])
    async with asyncio.timeout(60):
        assert await second.checkpoints.restore(beginner, lambda: bool(wanted and wanted.pop())) is None
    await until(lambda: not [each for each in threading.enumerate() if each.name == "ces-checkpoint"])


@pytest.mark.usefixtures("hasty")
async def test_who_does_not_answer_is_asked_once(second: Node, mute: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for patience in ("PACKING_S", "SILENCE_S"):
        monkeypatch.setattr(fetcher, patience, 0.0)
    copy = Checkpoint(attempt=1, incarnation=1, name="one", size=9, digest="1" * 64)
    sources = [CheckpointSource(node="first", url=mute, checkpoint=each) for each in (None, copy)]
    with pytest.raises(RuntimeUnavailable, match=r"had now: first: it does not answer$"):
        await second.checkpoints.restore(writer(restore=True, checkpoints=sources), lambda: True)


async def test_a_worker_that_is_to_start_no_longer_begins_from_nothing(second: Node) -> None:
    source = CheckpointSource(node="first", url="http://127.0.0.1:1/.checkpoints/j")
    assert await second.checkpoints.restore(writer(restore=True, checkpoints=[source]), lambda: False) is None
    assert second.checkpoints.report.begun == []
