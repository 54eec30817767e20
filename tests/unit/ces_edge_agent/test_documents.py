"""The desired state that an agent keeps on disk."""

from pathlib import Path

import pytest
from agent_parts import compute, worker

from ces_common.messages.desired import DesiredCompute
from ces_edge_agent.documents import StoredDocument


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "desired.json"


def kept_at(path: Path, node: str = "n") -> StoredDocument[DesiredCompute]:
    return StoredDocument(path, DesiredCompute, node)


def test_the_newest_document_is_kept_through_a_restart(path: Path) -> None:
    kept = kept_at(path)
    assert kept.current is None
    assert kept.offer(compute(generation=3).encode())
    assert kept.offer(compute(worker("a"), generation=5).encode())
    assert not kept.offer(compute(generation=4).encode())
    assert not kept.offer(compute(worker("a"), generation=5).encode())
    assert kept_at(path).current == compute(worker("a"), generation=5)


def test_another_controllers_version_of_the_same_generation_counts(path: Path) -> None:
    kept = kept_at(path)
    kept.offer(compute(generation=3).encode())
    assert kept.offer(compute(worker("a"), generation=3).encode())


def test_generations_compare_within_one_database_only(path: Path) -> None:
    kept = kept_at(path)
    kept.offer(compute(generation=300).encode())
    assert kept.offer(compute(generation=2, epoch="new").encode())


@pytest.mark.parametrize("raw", [b"", b"rubbish", b"{}", compute(node="other", generation=9).encode()])
def test_garbage_and_other_nodes_documents_are_ignored(path: Path, raw: bytes) -> None:
    kept = kept_at(path)
    kept.offer(compute(generation=3).encode())
    assert not kept.offer(raw)
    assert kept.current == compute(generation=3)


def test_what_lies_on_disk_must_be_this_nodes_and_readable(path: Path) -> None:
    kept_at(path).offer(compute(generation=3).encode())
    assert kept_at(path, "clone").current is None
    path.write_bytes(b'{"node": "n", "gene')
    assert kept_at(path).current is None


def test_a_document_that_cannot_be_kept_is_not_acted_upon(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart would fall back to the document before it, and start what was told to stop."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    kept = kept_at(path)
    kept.offer(compute(worker("a"), generation=3).encode())
    monkeypatch.setattr("ces_edge_agent.documents.write_atomically", full)
    assert not kept.offer(compute(generation=4).encode())
    assert kept.current == compute(worker("a"), generation=3)
