"""What the owner says on the device itself."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ces_edge_agent.lending import command, record
from ces_edge_agent.lending.decision import Standing


def stands(folder: Path, *, lent: bool) -> None:
    record.store(record.record_file(folder), Standing(lent=lent, quiet_s=60.0), "boot")


def test_a_word_is_kept_for_the_agent_alone(tmp_path: Path) -> None:
    assert command.given(tmp_path) is None
    command.give(tmp_path, "reclaim")
    assert command.given(tmp_path) == "reclaim"
    assert stat.S_IMODE(command.command_file(tmp_path).stat().st_mode) == 0o600


def test_a_word_of_roots_can_be_read_by_the_agents_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = tmp_path.stat()
    given_to = list[tuple[int, int]]()
    monkeypatch.setattr(os, "geteuid", lambda: agent.st_uid + 1)
    monkeypatch.setattr(os, "fchown", lambda _, *owner: given_to.append(owner))
    command.give(tmp_path, "reclaim")
    assert given_to == [(agent.st_uid, agent.st_gid)]


@pytest.mark.parametrize("content", [b"", b"reclaim lend", b"\xff\xfe", b"x" * 10**6])
def test_what_is_no_word_says_nothing(tmp_path: Path, content: bytes) -> None:
    command.command_file(tmp_path).write_bytes(content)
    assert command.given(tmp_path) is None


def test_the_command_waits_for_the_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stands(tmp_path, lent=False)
    assert command.main(["reclaim", "--state-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "reclaimed: what ran is frozen and ends within 10 s, and nothing starts\n"
    assert command.given(tmp_path) == "reclaim"


def test_it_says_so_where_no_agent_obeys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "PATIENCE_S", 0.2)
    stands(tmp_path, lent=True)
    assert command.main(["reclaim", "--state-dir", str(tmp_path)]) == 1
    assert "is it running?" in capsys.readouterr().err
    assert command.given(tmp_path) == "reclaim", "it obeys when it starts"


def test_a_folder_of_no_lender_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["reclaim", "--state-dir", str(tmp_path)]) == 2
    assert "CES_LENT=true" in capsys.readouterr().err
    assert command.given(tmp_path) is None
