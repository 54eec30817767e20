"""Logs: earlier runs are kept up to a number, and a failure's reasons are read from them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ces_testbed import logs
from ces_testbed.spec import Files


def test_only_the_last_runs_are_kept(tmp_path: Path) -> None:
    files = Files(tmp_path)
    for run in range(6):
        logs.rotate(files)
        files.logs.mkdir()
        files.log("manager").write_text(str(run))
    kept = {path.name: (path / "manager.log").read_text() for path in tmp_path.iterdir()}
    assert kept == {"logs": "5", "logs.1": "4", "logs.2": "3", "logs.3": "2"}


def test_logs_of_long_ended_clusters_go_and_nothing_else(tmp_path: Path) -> None:
    for age, name in enumerate(("newest", "middle", "oldest")):
        folder = tmp_path / name / "logs"
        folder.mkdir(parents=True)
        (folder / "progress.jsonl").touch()
        os.utime(folder, (1e9 - age, 1e9 - age))
    (tmp_path / "oldest" / "logs.1").mkdir()
    (tmp_path / "alive" / "logs").mkdir(parents=True)
    (tmp_path / "alive" / "logs" / "progress.jsonl").touch()
    (tmp_path / "alive" / "cluster.json").touch()
    (tmp_path / "strange" / "logs").mkdir(parents=True)
    os.utime(tmp_path / "alive" / "logs", (1, 1))
    assert logs.prune(tmp_path, keep=2) == [tmp_path / "oldest"]
    assert {path.name for path in tmp_path.iterdir()} == {"newest", "middle", "alive", "strange"}
    assert logs.prune(tmp_path / "none") == []


def test_reasons_are_whole_different_and_in_words(tmp_path: Path) -> None:
    log = tmp_path / "manager.log"
    entry = {"event": "the database cannot be written", "exception": "Traceback ...\n  frame\nOSError: disk full"}
    log.write_text(
        "CES_TICK_S: Input should be a number\n"
        + 'Traceback (most recent call last):\n  File "x.py", line 1\nOSError: [Errno 28] No space left on device\n'
        + "".join(json.dumps(entry) + "\n" for _ in range(50))
        + '{"event": "cut in the mid'
    )
    assert logs.reasons(log, 2) == [
        "OSError: [Errno 28] No space left on device",
        "the database cannot be written: OSError: disk full",
    ]
    assert logs.reasons(log)[0] == "CES_TICK_S: Input should be a number"
    log.write_text("[7] 2030/01/01 10:00:00.1 [FTL] can't start JetStream: insufficient storage\n")
    assert logs.reasons(log) == ["can't start JetStream: insufficient storage"]
    assert logs.reasons(tmp_path / "none.log") == []
