"""Which program a worker's command names, what that needs of the node, and whether it sees the host's /tmp."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ces_edge_agent.ports import Refused
from ces_edge_agent.runtimes.isolation import private_tmp
from ces_edge_agent.runtimes.programs import closed_to_others, environment, outermost, resolve


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


def test_the_environment_holds_all_that_its_python_imports_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ask = [
        sys.executable,
        "-I",
        "-c",
        "import json, sys, ces_common; print(json.dumps([ces_common.__file__, *sys.path]))",
    ]
    imported = json.loads(subprocess.run(ask, capture_output=True, text=True, check=True).stdout)
    for path in filter(os.path.exists, [sys.executable, os.path.realpath(sys.executable), *imported]):
        assert any(Path(path).is_relative_to(shown) for shown in environment()), path
    assert not any(tmp_path.is_relative_to(shown) for shown in environment()), "the folder that it is started in"


def test_what_lies_in_another_path_needs_no_mention() -> None:
    assert outermost(["/a/b", "/a/bc", "/a/b/c/d", "/e"]) == {"/a/b", "/a/bc", "/e"}


def test_what_others_cannot_read_is_found(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("open", "shut", "file", "secret")]
    for path, mode in zip(paths, (0o755, 0o754, 0o644, 0o640), strict=True):
        path.mkdir() if mode & 0o100 else path.touch()
        path.chmod(mode)
    assert closed_to_others(map(str, paths)) == [str(paths[1]), str(paths[3])]
