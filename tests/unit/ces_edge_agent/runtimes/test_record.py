"""A worker's records on disk."""

from __future__ import annotations

import os
from pathlib import Path

from ces_edge_agent.runtimes import record


def test_only_the_first_claim_counts_and_it_shows_who_lives(tmp_path: Path) -> None:
    assert record.claimant(tmp_path) is None
    first = record.claim(tmp_path)
    assert first is not None
    assert record.claim(tmp_path) is None
    assert record.claimant(tmp_path) == os.getpid()
    os.close(first)
    assert record.claimant(tmp_path) is None
    assert record.claim(tmp_path) is None
    assert [path.name for path in tmp_path.iterdir()] == ["claim"]


def test_an_exit_record_that_is_not_whole_is_none(tmp_path: Path) -> None:
    assert record.read_exit(tmp_path) is None
    (tmp_path / "exit.json").write_text('{"code": 3, "rea')
    assert record.read_exit(tmp_path) is None
    record.write_exit(tmp_path, record.Exit(3, "because", 1.0, 2.0))
    assert record.read_exit(tmp_path) == record.Exit(3, "because", 1.0, 2.0)
