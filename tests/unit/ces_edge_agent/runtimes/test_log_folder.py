"""A bounded log: written by LogFile, read by LogFolder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_edge_agent.ports import LogChunk, Refused
from ces_edge_agent.runtimes.log_file import LogFile, segment_folder
from ces_edge_agent.runtimes.log_folder import LogFolder

LIMIT = 80  # bytes: a head of 40 and four segments of 10


def write(folder: Path, *texts: bytes, limit: int = LIMIT) -> None:
    """Each text by another writer."""
    for text in texts:
        log = LogFile(str(folder / "a.log"), limit)
        log.write(text)
        log.close()


def used(folder: Path) -> int:
    """Bytes that all files of the log take."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def whole(folder: Path, limit: int = 10**6) -> list[LogChunk]:
    """Reads until the end."""
    chunks: list[LogChunk] = []
    while not chunks or chunks[-1].more:
        offset = chunks[-1].offset + len(chunks[-1].data) if chunks else 0
        chunk = await LogFolder(folder).read("a", offset, limit)
        assert chunk is not None
        chunks.append(chunk)
    return chunks


async def test_a_log_within_its_limit_is_kept_whole(tmp_path: Path) -> None:
    text = bytes(range(LIMIT))
    write(tmp_path, text)
    assert await whole(tmp_path) == [LogChunk(0, text)]
    assert LogFolder(tmp_path).end("a") == LIMIT


async def test_a_long_log_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    text = b"".join(b"%06d\n" % number for number in range(1000))
    write(tmp_path, text)
    head, tail = await whole(tmp_path)
    assert (head.data, head.gap, head.more) == (text[:40], True, True)
    assert tail.data == text[tail.offset :]
    assert tail.dropped == tail.offset - 40
    assert 30 <= len(tail.data) <= 40
    assert used(tmp_path) <= LIMIT


@given(st.lists(st.binary(max_size=70), min_size=1, max_size=12), st.integers(1, 60))
async def test_whatever_is_written_offsets_count_every_byte(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], limit: int
) -> None:
    """Writers that take over from each other, and readers with any limit, lose nothing but what was dropped."""
    folder, text = tmp_path_factory.mktemp("log"), b"".join(texts)
    write(folder, *texts)
    assert LogFolder(folder).end("a") == len(text)
    assert used(folder) <= LIMIT
    chunks = await whole(folder, limit)
    place = 0
    for chunk in chunks:
        assert chunk.offset == place + chunk.dropped
        assert chunk.data == text[chunk.offset : chunk.offset + len(chunk.data)]
        place = chunk.offset + len(chunk.data)
    assert place == len(text)
    assert sum(chunk.dropped for chunk in chunks) == 0 or len(text) > LIMIT


@given(st.lists(st.sampled_from([b"\n", b"a", b"longer line\n"]), max_size=12), st.integers(0, 9))
async def test_the_last_lines_are_those_that_tail_shows(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], lines: int
) -> None:
    folder, text = tmp_path_factory.mktemp("log"), b"".join(texts)
    write(folder, text, limit=10**6)
    shown = b"".join(text.splitlines(keepends=True)[-lines:]) if lines else b""
    assert await LogFolder(folder).tail("a", lines) == len(text) - len(shown)


async def test_more_lines_than_the_end_keeps_are_taken_from_the_beginning(tmp_path: Path) -> None:
    write(tmp_path, b"".join(b"%03d\n" % number for number in range(100)))
    assert await LogFolder(tmp_path).tail("a", 10) == 360
    assert await LogFolder(tmp_path).tail("a", 12) == 32
    assert await LogFolder(tmp_path).tail("a", 10**6) == 0


async def test_a_reader_that_is_overtaken_goes_on_with_what_is_left(tmp_path: Path) -> None:
    write(tmp_path, b"x" * 65)
    folder = LogFolder(tmp_path)
    assert await folder.read("a", 45, 5) == LogChunk(45, b"x" * 5, more=True)
    write(tmp_path, b"y" * 100)
    chunk = await folder.read("a", 50, 100)
    assert chunk == LogChunk(130, b"y" * 35, dropped=80)


async def test_there_is_no_log_before_it_is_written(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    assert await folder.read("a", 0, 10) is None
    assert await folder.tail("a", 10) is None
    assert folder.end("a") == 0
    with pytest.raises(Refused):
        await folder.read("../a", 0, 10)


def test_a_full_disk_ends_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    log = LogFile(str(tmp_path / "a.log"), LIMIT)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        log.write(b"lost")
    log.write(b"kept")
    log.close()
    assert (tmp_path / "a.log").read_bytes() == b"kept"


async def test_old_logs_go_and_those_in_use_stay(tmp_path: Path) -> None:
    for name, age_s in (("old", 100), ("used", 100), ("new", 0), ("long", 100)):
        file = tmp_path / f"{name}.log"
        file.write_text("x")
        when = file.stat().st_mtime - age_s
        os.utime(file, (when, when))
    for name in ("old", "long"):
        segment_folder(tmp_path / f"{name}.log").mkdir()
    (tmp_path / "long.tail" / "1").write_text("still written to")
    (tmp_path / "other.txt").write_text("x")
    await LogFolder(tmp_path).discard(50, {"used"})
    assert sorted(os.listdir(tmp_path)) == ["long.log", "long.tail", "new.log", "other.txt", "used.log"]
