"""A cluster's name belongs to one state folder on the whole machine, as long as anything of that cluster runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ces_testbed import owners
from ces_testbed.errors import NameTaken
from ces_testbed.processes import MARK, Known, Records
from ces_testbed.spec import Files


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locks").mkdir()
    monkeypatch.setattr(owners, "FOLDER", tmp_path / "locks")


@pytest.fixture
def mine(tmp_path: Path) -> Files:
    return Files(tmp_path / "mine")


@pytest.fixture
def theirs(tmp_path: Path) -> Files:
    return Files(tmp_path / "theirs")


def forget_keeper(files: Files) -> None:
    """As if the process that claimed the name had been killed."""
    path = owners.FOLDER / "ces-cluster-lab.json"
    owner = owners.Owner.model_validate_json(path.read_text())
    assert owner.state == str(files.root)
    path.write_text(owner.model_copy(update={"started": 1.0}).model_dump_json())


def test_another_state_folder_is_refused_the_name_and_told_whose_it_is(mine: Files, theirs: Files) -> None:
    owners.claim("lab", mine)
    with pytest.raises(NameTaken, match=f"{mine.root} .*process {os.getpid()}"):
        owners.claim("lab", theirs)
    owners.claim("lab", mine)
    owners.claim("other", theirs)
    held = [owners.owner_of(name) for name in ("lab", "other")]
    assert [owner and owner.cluster for owner in held] == ["lab", "other"]
    assert owners.other_owner("lab", mine) is None
    assert owners.other_owner("lab", theirs) is not None


def test_a_released_name_is_free_and_only_its_owner_releases_it(mine: Files, theirs: Files) -> None:
    owners.claim("lab", mine)
    owners.release("lab", theirs)
    assert owners.owner_of("lab") is not None
    owners.release("lab", mine)
    owners.claim("lab", theirs)


def test_a_name_is_held_while_any_process_of_its_cluster_runs(mine: Files, theirs: Files) -> None:
    owners.claim("lab", mine)
    forget_keeper(mine)
    assert owners.owner_of("lab") is None
    mine.prepare()
    me = Known.of("manager", os.getpid())
    assert me is not None
    Records(mine.processes).write([me])
    with pytest.raises(NameTaken):
        owners.claim("lab", theirs)
    Records(mine.processes).write([])
    marked = subprocess.Popen(
        [sys.executable, "-c", "print('on', flush=True); input()"],
        env={**os.environ, MARK: str(mine.root)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert marked.stdout is not None
    assert marked.stdout.readline() == "on\n"
    assert owners.other_owner("lab", theirs) is not None, "nobody wrote it down, but it carries the folder"
    marked.communicate("\n")
    owners.claim("lab", theirs)


def test_a_claim_that_cannot_be_read_is_none(mine: Files) -> None:
    (owners.FOLDER / "ces-cluster-lab.json").write_text("{")
    assert owners.owner_of("lab") is None
    owners.claim("lab", mine)
    assert owners.owner_of("lab") is not None


def test_everybody_can_read_whose_a_name_is(mine: Files) -> None:
    before = os.umask(0o077)
    try:
        owners.claim("lab", mine)
    finally:
        os.umask(before)
    assert all(path.stat().st_mode & 0o004 for path in owners.FOLDER.iterdir())


def test_a_name_that_cannot_be_held_is_an_error_in_words(
    mine: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "FOLDER", tmp_path / "none")
    with pytest.raises(NameTaken, match=r"cannot be held: .*none.*: No such file"):
        owners.claim("lab", mine)
