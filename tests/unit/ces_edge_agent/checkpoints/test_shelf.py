"""What is on the shelf is complete, of the latest writer, and there for as long as it counts."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ces_common.messages.checkpoints import Checkpoint
from ces_edge_agent.checkpoints.shelf import Outdated, Shelf
from ces_edge_agent.ports import Refused


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    made = Shelf(tmp_path / "copies")
    made.open()
    return made


def put(shelf: Shelf, text: str, attempt: int = 1, incarnation: int = 1, job: str = "j") -> Checkpoint:
    content = text.encode()
    checkpoint = Checkpoint(
        attempt=attempt,
        incarnation=incarnation,
        name="step",
        size=len(content),
        digest=hashlib.sha256(content).hexdigest(),
    )
    with shelf.blank() as file:
        file.write(content)
        shelf.put(job, checkpoint, file)
    return checkpoint


def test_what_was_put_there_is_read_by_its_digest(shelf: Shelf, tmp_path: Path) -> None:
    one = put(shelf, "one")
    assert shelf.all("j") == [one]
    assert shelf.archive("j", "0" * 64) is None
    assert shelf.archive("other", one.digest) is None
    archive = Shelf(tmp_path / "copies").archive("j", one.digest)
    assert archive is not None
    with archive:
        assert archive.read() == b"one"


def test_a_late_writer_replaces_nothing(shelf: Shelf) -> None:
    newer = put(shelf, "newer", attempt=2)
    for attempt, incarnation in ((1, 1), (1, 9)):
        with pytest.raises(Outdated, match="attempt 1 is older than what is kept"):
            put(shelf, "late", attempt, incarnation)
    assert shelf.all("j") == [newer]
    newest = put(shelf, "newest", attempt=2, incarnation=2)
    assert shelf.all("j") == [newest, newer]


def test_what_was_not_finished_is_never_seen(shelf: Shelf, tmp_path: Path) -> None:
    with shelf.blank() as file:
        file.write(b"half")
        assert shelf.jobs() == []
    assert list((tmp_path / "copies").iterdir()) == []
    (tmp_path / "copies" / ".cut-off").write_text("half")
    shelf.open()
    assert list((tmp_path / "copies").iterdir()) == []


def test_what_nobody_counts_on_goes(shelf: Shelf) -> None:
    one, two, other = put(shelf, "one"), put(shelf, "two"), put(shelf, "other", job="k")
    shelf.keep({"j": {two.digest}, "k": {other.digest}})
    assert (shelf.all("j"), shelf.all("k")) == ([two], [other])
    assert shelf.archive("j", one.digest) is None
    shelf.keep({"j": {two.digest}})
    assert shelf.jobs() == ["j"]


def test_what_is_being_put_there_stays_until_the_agent_starts_again(shelf: Shelf, tmp_path: Path) -> None:
    one = put(shelf, "one")
    record = tmp_path / "copies" / "j" / f".{one.digest}.json.new"  # of another thread
    record.touch()
    shelf.keep({"j": {one.digest}})
    assert record.exists()
    shelf.open()
    assert not record.exists()
    assert shelf.all("j") == [one]


def test_a_name_leads_nowhere_else(shelf: Shelf) -> None:
    with pytest.raises(Refused):
        shelf.all("../elsewhere")
