"""``ces train`` where torch is missing: it says so, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ces_train import commands, needs


def test_what_training_lacks_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda name: None if name == "torch" else object())
    answer = CliRunner().invoke(commands.train, ["ppo", "--updates", "1"])
    assert answer.exit_code == 2
    assert "training needs torch: make install-train" in answer.output


@pytest.mark.needs("torch")
def test_a_folder_with_a_run_is_left_alone(tmp_path: Path) -> None:

    folder = tmp_path
    (folder / "checkpoint.pt").write_bytes(b"a run")
    answer = CliRunner().invoke(commands.train, ["ppo", "--updates", "1", "--out", str(folder)])
    assert answer.exit_code == 2
    assert "--resume" in answer.output
    assert [file.name for file in folder.iterdir()] == ["checkpoint.pt"]
