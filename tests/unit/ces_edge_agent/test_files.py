"""Files that survive a crash."""

import os
import stat
from pathlib import Path

import pytest

from ces_edge_agent.files import write_atomically


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "desired.json"


def test_files_are_replaced_whole_and_private(path: Path) -> None:
    write_atomically(path, "one")
    write_atomically(path, "two")
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_file_is_on_disk_under_its_name_before_anybody_relies_on_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []

    def fsync(descriptor: int) -> None:
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append(("folder" if folder else "file", path.read_text() if path.exists() else None))

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomically(path, "one")
    assert synced == [("file", None), ("folder", "one")]
