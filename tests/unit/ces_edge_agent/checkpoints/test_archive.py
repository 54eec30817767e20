"""What is a complete checkpoint, and that nothing but files and folders goes into an archive or comes out of one."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from ces_edge_agent.checkpoints import archive
from ces_edge_agent.checkpoints.archive import Packed, Unfit, is_complete, name_of, newest, pack, repack, unpack

LIMIT = 10_000


@pytest.mark.parametrize("name", ["step-7", "epoch=3.pt", "_x", "7"])
def test_a_renamed_entry_is_complete(name: str) -> None:
    assert is_complete(name)


@pytest.mark.parametrize(
    "name", ["", ".new", "tmp", "tmp-7", "step.tmp", "step.part", "a b", "step\n", "a/b", "..", "x" * 129]
)
def test_one_that_is_being_written_is_not(name: str) -> None:
    assert not is_complete(name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "job"
    (made / "step-2" / "shards").mkdir(parents=True)
    (made / "step-2" / "shards" / "0").write_bytes(b"zero")
    (made / "step-2" / "weights").write_bytes(b"w" * 3000)
    (made / "step-1").write_text("one")
    (made / "step-3.tmp").write_text("half")
    aged(made / "step-1", 100)
    aged(made / "step-2", 200)
    return made


def aged(path: Path, changed: float) -> None:
    os.utime(path, (changed, changed))


def packed(folder: Path, name: str, limit: int = LIMIT) -> io.BytesIO:
    into = io.BytesIO()
    pack(folder, name, into, limit)
    into.seek(0)
    return into


def unpacked(archive: io.BytesIO, tmp_path: Path) -> Path:
    into = tmp_path / "restored"
    into.mkdir()
    archive.seek(0)
    unpack(archive, into, LIMIT, os.geteuid(), os.getegid())
    return into


def test_the_newest_complete_one_counts(folder: Path) -> None:
    first = newest(folder)
    assert first is not None
    assert first.name == "step-2"
    assert newest(folder) == first
    aged(folder / "step-1", 300)
    assert isinstance(second := newest(folder), Packed)
    assert second.name == "step-1"
    (folder / "latest").symlink_to("/etc/passwd")
    assert newest(folder) == second


def test_a_folder_comes_out_as_it_went_in(folder: Path, tmp_path: Path) -> None:
    archive = packed(folder, "step-2")
    assert archive.getvalue() == packed(folder, "step-2").getvalue(), "the same checkpoint has the same digest"
    assert name_of(archive, LIMIT) == "step-2"
    found = unpacked(archive, tmp_path)
    assert [each.name for each in found.iterdir()] == ["step-2"]
    assert (found / "step-2" / "shards" / "0").read_bytes() == b"zero"
    assert (found / "step-2" / "weights").read_bytes() == b"w" * 3000
    again = io.BytesIO()
    archive.seek(0)
    repack(archive, again, LIMIT)
    assert again.getvalue() == archive.getvalue()


def test_neither_links_nor_devices_are_packed(folder: Path) -> None:
    (folder / "step-2" / "shards" / "1").symlink_to("/etc/passwd")
    with pytest.raises(Unfit, match="step-2/shards/1 cannot be opened: symbolic links are not followed"):
        packed(folder, "step-2")
    (folder / "step-2" / "shards" / "1").unlink()
    os.mkfifo(folder / "step-2" / "shards" / "1")
    with pytest.raises(Unfit, match="neither a file nor a folder"):
        packed(folder, "step-2")


@pytest.mark.needs("root")  # to give a file to somebody else
def test_nobody_elses_files_are_packed(folder: Path) -> None:
    os.chown(folder / "step-2" / "weights", 4711, 4711)
    with pytest.raises(Unfit, match="step-2/weights belongs to somebody else"):
        packed(folder, "step-2")


def test_a_long_name_comes_along(folder: Path, tmp_path: Path) -> None:
    deep = folder / "step-2" / ("x" * 120) / ("y" * 120)
    deep.mkdir(parents=True)
    (deep / "z").write_text("deep")
    aged(folder / "step-2", 200)
    found = unpacked(packed(folder, "step-2"), tmp_path)
    assert (found / deep.relative_to(folder) / "z").read_text() == "deep"


def test_there_is_a_limit(folder: Path) -> None:
    with pytest.raises(Unfit, match="more than 3000 bytes"):
        packed(folder, "step-2", limit=3000)
    with pytest.raises(Unfit, match="more than 3000 bytes"):
        name_of(packed(folder, "step-2"), limit=3000)


def test_what_is_written_after_it_is_newer_whatever_the_other_nodes_clock_said(folder: Path, tmp_path: Path) -> None:
    aged(folder / "step-2", 2**32)
    found = unpacked(packed(folder, "step-2"), tmp_path)
    (found / "step-3").write_text("three")
    assert isinstance(now := newest(found), Packed)
    assert now.name == "step-3"


def test_no_more_names_are_read_than_may_be_packed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_ENTRIES", 2)
    (folder / "step-2" / "more").touch()
    into = io.BytesIO()
    with pytest.raises(Unfit, match="step-2 has more than 2 files and folders"):
        pack(folder, "step-2", into, LIMIT)
    assert len(into.getvalue()) <= tarfile.RECORDSIZE, "nothing but the folder"


def test_a_change_that_no_file_system_dates_is_dated_otherwise(tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        forged = tarfile.TarInfo("step")
        forged.mtime = 2**70
        archive.addfile(forged)
    made.seek(0)
    assert name_of(made, LIMIT) == "step"
    assert [each.name for each in unpacked(made, tmp_path).iterdir()] == ["step"]


def tar(*entries: tuple[str, bytes]) -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, kind in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry)
    made.seek(0)
    return made


@pytest.mark.parametrize(
    "forged",
    [
        tar(("../escaped", tarfile.REGTYPE)),
        tar(("/etc/escaped", tarfile.REGTYPE)),
        tar(("step/../../escaped", tarfile.REGTYPE)),
        tar(("step", tarfile.SYMTYPE)),
        tar(("step", tarfile.DIRTYPE), ("step/link", tarfile.LNKTYPE)),
        tar(("step", tarfile.CHRTYPE)),
        tar(("step", tarfile.GNUTYPE_SPARSE)),
        tar(("step", tarfile.XHDTYPE)),
        tar(("step", tarfile.XGLTYPE)),
        tar(("step/" + "long/" * 2000, tarfile.REGTYPE)),
        tar(("step", tarfile.REGTYPE), ("other", tarfile.REGTYPE)),
        tar((".hidden", tarfile.REGTYPE)),
        tar(("step", tarfile.REGTYPE), ("step", tarfile.REGTYPE)),
        tar(("step", tarfile.DIRTYPE), ("step/", tarfile.DIRTYPE)),
        tar(("step", tarfile.DIRTYPE), ("step/missing/file", tarfile.REGTYPE)),
        tar(("step", tarfile.REGTYPE), ("step/file", tarfile.REGTYPE)),
        tar(("step", tarfile.DIRTYPE), ("step/" + "x" * 256, tarfile.REGTYPE)),
        tar(),
        io.BytesIO(b"no archive at all"),
    ],
)
def test_a_forged_archive_is_refused(forged: io.BytesIO, tmp_path: Path) -> None:
    with pytest.raises(Unfit):
        name_of(forged, LIMIT)
    with pytest.raises(Unfit):
        unpacked(forged, tmp_path)
    assert not list(tmp_path.rglob("*escaped*"))
