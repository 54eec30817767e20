"""The folder of a job's checkpoints goes from worker to worker, and is removed with its job."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ces_edge_agent.checkpoints.archive import Unfit, entry
from ces_edge_agent.ports import Refused
from ces_edge_agent.runtimes.checkpoint_folders import CheckpointFolders


@pytest.fixture
def folders(tmp_path: Path) -> CheckpointFolders:
    made = CheckpointFolders(tmp_path / "checkpoints")
    made.open()
    return made


def give(folders: CheckpointFolders, job: str, key: str) -> Path:
    return folders.give(job, key, os.geteuid(), os.getegid())


def test_it_goes_to_the_next_worker_with_all_that_is_in_it(folders: CheckpointFolders) -> None:
    first = give(folders, "j", "a.1")
    (first / "step-7").write_text("weights")
    second = give(folders, "j", "b.1")
    assert (second / "step-7").read_text() == "weights"
    assert give(folders, "j", "b.1") == second
    with pytest.raises(FileNotFoundError):
        (first / "step-3").write_text("late")


def test_what_a_worker_holds_open_goes_along(folders: CheckpointFolders) -> None:
    first = give(folders, "j", "a.1")
    with (first / "step-7").open("w") as held:
        second = give(folders, "j", "b.1")
        held.write("late")
    assert (second / "step-7").read_text() == "late"


@pytest.mark.parametrize("key", ["a.1", "b.1"])
def test_a_worker_with_another_user_begins_with_nothing(folders: CheckpointFolders, key: str) -> None:
    first = give(folders, "j", "a.1")
    (first / "step-7").write_text("weights")
    user = os.geteuid() + 300000
    with capture_logs() as told:
        second = folders.give("j", key, user, user)
    assert list(second.iterdir()) == []
    assert list(second.parent.iterdir()) == [second]
    (said,) = told
    assert (said["log_level"], said["job"], said["owner"], said["user"]) == ("warning", "j", os.geteuid(), user)


def test_half_a_checkpoint_is_taken_for_none(folders: CheckpointFolders) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as opened:
        opened.addfile(entry("step-7", 3 * 2**20, 0), io.BytesIO(bytes(3 * 2**20)))
    half = io.BytesIO(archive.getvalue()[: 2**20])
    with pytest.raises(Unfit):
        folders.give("j", "a.1", os.geteuid(), os.getegid(), half, 2**30)
    first = give(folders, "j", "a.1")
    assert list(first.parent.iterdir()) == [first]
    assert list(first.iterdir()) == []
    first.rmdir()
    left = first.parent / ".restored"  # by an agent that was killed
    left.mkdir()
    (left / "step-7").write_text("half")
    assert folders.pack("j", io.BytesIO(), 2**20, None) is None
    assert list(give(folders, "j", "b.1").iterdir()) == []
    assert not left.exists()


def test_each_job_has_its_own(folders: CheckpointFolders) -> None:
    (give(folders, "j", "a.1") / "step-7").touch()
    assert list(give(folders, "k", "c.1").iterdir()) == []
    assert folders.owners() == dict.fromkeys(("j", "k"), os.geteuid())


def test_it_stays_for_as_long_as_its_job_is_kept(folders: CheckpointFolders) -> None:
    for job in ("j", "k"):
        (give(folders, job, "a.1") / "deeper").mkdir()
    folders.keep({"j"})
    assert folders.owners().keys() == {"j"}
    folders.keep(())
    assert folders.owners() == {}


@pytest.mark.parametrize("name", ["..", "a/b", ""])
def test_no_name_leads_elsewhere(folders: CheckpointFolders, name: str) -> None:
    with pytest.raises(Refused):
        give(folders, name, "a.1")
    with pytest.raises(Refused):
        give(folders, "j", name)
