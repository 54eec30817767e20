"""Which program a worker's command names, and whether it sees the host's /tmp."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_edge_agent.ports import Refused
from ces_edge_agent.runtimes.isolation import private_tmp
from ces_edge_agent.runtimes.programs import resolve


def test_programs_are_looked_up_as_the_worker_would(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "train"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    with pytest.raises(Refused, match=r"train: .*"):
        resolve(["train"], str(script.parent), tmp_path)
    script.chmod(0o755)
    assert resolve(["train", "-x"], str(script.parent), tmp_path) == (str(script), ["train", "-x"])
    assert resolve(["bin/train"], "", tmp_path)[0] == str(script)
    with pytest.raises(Refused, match="names no command"):
        resolve([], "/bin", tmp_path)
    with pytest.raises(Refused, match="cannot be executed"):
        resolve([str(tmp_path)], "/bin", tmp_path)


def test_tmp_is_shared_only_where_the_program_lies_there() -> None:
    assert private_tmp("/usr/bin/python3", ["python3", "-m", "train"])
    assert not private_tmp("/usr/bin/python3", ["python3", "/tmp/train.py"])
    assert not private_tmp("/tmp/venv/bin/python3", ["python3"])
