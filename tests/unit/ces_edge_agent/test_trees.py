"""Whatever a worker leaves is removed, and nothing beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ces_edge_agent.trees import remove_tree

DEPTH = 1500  # deeper than Python calls itself, and than the longest path
AS_ANYBODY = """
import os, sys
from pathlib import Path
from ces_edge_agent.trees import remove_tree
os.setresuid(12345, 12345, 12345)
top = Path(sys.argv[1]) / "top"
(top / "closed" / "deeper").mkdir(parents=True)
(top / "closed" / "deeper").chmod(0)
(top / "closed").chmod(0)
remove_tree(top)
print(top.exists())
"""


def test_folders_within_folders_without_end_go_and_what_links_name_stays(tmp_path: Path) -> None:
    top, kept = tmp_path / "top", tmp_path / "kept"
    top.mkdir()
    kept.mkdir()
    (kept / "file").touch()
    (top / "link").symlink_to(kept)
    here = os.open(top, os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("deeper", dir_fd=here)
        below = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.symlink(kept, "link", dir_fd=here)
    os.close(here)
    remove_tree(top)
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
    assert (kept / "file").exists()
    remove_tree(top)


def test_one_that_is_a_link_itself_goes_alone(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "link").symlink_to(kept)
    remove_tree(tmp_path / "link")
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]


def test_what_cannot_be_removed_raises_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", _fails)
    remove_tree(tmp_path)
    assert tmp_path.exists()


def _fails(*_: object, **__: object) -> None:
    raise FileNotFoundError("no such program")


@pytest.mark.needs("root")
def test_its_owner_removes_what_is_closed_to_everybody() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # which everybody can reach
        os.chown(folder, 12345, 12345)
        done = subprocess.run([sys.executable, "-c", AS_ANYBODY, folder], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
