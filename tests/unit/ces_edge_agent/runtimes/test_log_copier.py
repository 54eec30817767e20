"""A container's output in its allocation's log: nothing of it is lost, repeated, or taken for another's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from ces_edge_agent.runtimes import log_copier
from ces_edge_agent.runtimes.log_copier import LogCopier, LogCopiers


class Output:
    """An engine that streams ``chunks`` and then says whether the container still runs. Who follows misses the last
    ``late`` of them."""

    def __init__(self, *chunks: bytes, running: bool = False, late: int = 0) -> None:
        self.chunks, self.running, self.late = chunks, running, late

    def logs(self, container: str, stream: bool, follow: bool) -> Iterator[bytes]:
        yield from self.chunks[: len(self.chunks) - self.late] if follow else self.chunks

    def inspect_container(self, container: str) -> dict[str, Any]:
        return {"State": {"Running": self.running}}


@pytest.mark.parametrize("there", ["", "ab", "abcd", "abcdef"])
def test_a_copier_skips_what_the_file_holds_already(tmp_path: Path, there: str) -> None:
    path = tmp_path / "a.log"
    path.write_text("older " + there)
    copier = LogCopier(Output(b"abc", b"def"), "c1", path, base=len("older "))
    copier.join(5)
    assert path.read_text() == "older abcdef"
    assert copier.complete
    assert not copier.alive


@pytest.mark.parametrize("there", ["", "ab", "abcdefghi"])
def test_last_words_that_the_engine_kept_back_are_not_lost(tmp_path: Path, there: str) -> None:
    path = tmp_path / "a.log"
    path.write_text("older " + there)
    copier = LogCopier(Output(b"abc", b"def", b"ghi", late=2), "c1", path, base=len("older "))
    copier.join(5)
    assert path.read_text() == "older abcdefghi"
    assert copier.complete


def test_a_stream_that_ends_before_its_container_is_not_complete(tmp_path: Path) -> None:
    copier = LogCopier(Output(b"abc", running=True), "c1", tmp_path / "a.log", base=0)
    copier.join(5)
    assert not copier.complete


def test_no_thread_is_left(tmp_path: Path) -> None:
    before = threading.active_count()
    LogCopier(Output(), "c1", tmp_path / "a.log", base=0).close()
    assert threading.active_count() == before


def test_what_follows_an_earlier_container_in_the_log_is_not_taken_for_that_ones(tmp_path: Path) -> None:
    """An engine that is slow to give the rest of the first one's output: what comes later would be written behind the
    point from which the next one counts, and as much of that one's be left out."""
    path, released = tmp_path / "a.log", threading.Event()

    class Slow(Iterator[bytes]):
        def __init__(self) -> None:
            self.left = [b"first\n", b"late\n"]

        def __next__(self) -> bytes:
            if len(self.left) == 1:
                released.wait(5)
            return self.left.pop(0)

        def close(self) -> None:
            released.set()

    class SlowEngine(Output):
        def logs(self, container: str, stream: bool, follow: bool) -> Iterator[bytes]:
            return Slow()

    first = LogCopier(SlowEngine(running=True), "c1", path, base=0)
    wait_for(lambda: path.exists() and path.read_text() == "first\n", "its first line is there")
    first.finish(0.01)
    assert first.complete
    base = len(path.read_text())
    second = LogCopier(Output(b"second\n"), "c2", path, base)
    second.join(5)
    assert path.read_text() == "first\nsecond\n"


def test_whoever_asks_at_once_there_is_one_copier_of_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker's start and a look at all workers both see to it."""
    made, both = list[str](), threading.Barrier(2, timeout=0.2)

    class Slow(LogCopier):
        def __init__(self, client: Any, container: str, path: Path, base: int) -> None:
            made.append(container)
            with suppress(threading.BrokenBarrierError):
                both.wait()
            super().__init__(client, container, path, base)

    monkeypatch.setattr(log_copier, "LogCopier", Slow)
    copiers, path = LogCopiers(), tmp_path / "a.log"
    askers = [threading.Thread(target=copiers.follow, args=("a.1", Output(b"once\n"), "c1", path, 0)) for _ in range(2)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(60)
    copiers.end("a.1", 60)
    assert made == ["c1"]
    assert path.read_text() == "once\n"
