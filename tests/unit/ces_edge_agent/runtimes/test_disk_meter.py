"""What is counted of a worker's files, and how much of it at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from ces_edge_agent.runtimes import disk_meter
from ces_edge_agent.runtimes.disk_meter import DiskMeter

MIB = 2**20


@pytest.fixture(autouse=True)
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_meter, "REST_S", 0.0)


def meter(folder: Path, limit: int) -> DiskMeter:
    return DiskMeter([str(folder)], limit, lambda: [os.getpid()])


def write(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.write(b"x" * size)
        os.fsync(file.fileno())  # so that its blocks are counted


def test_what_lies_at_any_depth_counts_and_holes_do_not(tmp_path: Path) -> None:
    deeper = tmp_path / "a" / "b"
    deeper.mkdir(parents=True)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(100 * MIB)
    assert meter(tmp_path, MIB).look() is None
    write(deeper / "file", MIB)
    assert meter(tmp_path, MIB).look() == f"disk limit exceeded: more than {MIB} bytes in its folder"
    assert meter(tmp_path, 2 * MIB).look() is None


def test_empty_files_count_and_one_with_many_names_counts_once(tmp_path: Path) -> None:
    write(tmp_path / "file", MIB)
    for number in range(50):
        os.link(tmp_path / "file", tmp_path / f"name{number}")
    assert meter(tmp_path, MIB + 60 * 4096).look() is None
    for number in range(300):
        (tmp_path / f"empty{number}").touch()
    assert meter(tmp_path, MIB + 60 * 4096).look() is not None


def test_what_links_name_does_not_count(tmp_path: Path) -> None:
    kept, own = tmp_path / "kept", tmp_path / "own"
    kept.mkdir()
    own.mkdir()
    write(kept / "file", 2 * MIB)
    (own / "folder").symlink_to(kept)
    (own / "file").symlink_to(kept / "file")
    assert meter(own, MIB).look() is None


def test_what_was_deleted_and_is_still_open_counts(tmp_path: Path) -> None:
    write(tmp_path / "file", 2 * MIB)
    with (tmp_path / "file").open("rb"):
        (tmp_path / "file").unlink()
        assert meter(tmp_path, MIB).look() is not None
    assert meter(tmp_path, MIB).look() is None


def test_folders_too_deep_to_be_looked_at_hide_nothing(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    here = os.open(own, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert meter(own, MIB).look() == "disk limit: what it keeps cannot be measured: File name too long"


def test_a_look_is_short_and_the_next_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1000):
        (tmp_path / f"f{number}").touch()
    ticks: Iterator[int] = count()
    monkeypatch.setattr("time.monotonic", lambda: next(ticks))
    watched = meter(tmp_path, 900 * 4096)
    looks = 1
    while watched.look() is None:
        looks += 1
    assert looks == 4
