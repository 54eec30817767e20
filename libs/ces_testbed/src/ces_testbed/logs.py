"""Logs of a cluster's services: how many runs of them are kept, and what they say of a failure."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from ces_testbed.spec import Files

KEPT_RUNS = 3  # earlier runs of one cluster
KEPT_CLUSTERS = 10  # clusters of which nothing but logs is left
TAIL_BYTES = 65536
_NATS_PREFIX = re.compile(r"^\[\d+\] \S+ \S+ \[\w+\] ")


def rotate(files: Files) -> None:
    """Put the logs of the last run aside as ``logs.1``, and the earlier ones a number further; the oldest go."""
    if not files.logs.is_dir():
        return
    folders = [files.logs, *(files.root / f"logs.{i}" for i in range(1, KEPT_RUNS + 1))]
    shutil.rmtree(folders[-1], ignore_errors=True)
    for older, newer in zip(folders[:0:-1], folders[-2::-1], strict=True):
        if newer.is_dir():
            newer.rename(older)


def are_logs(path: Path) -> bool:
    """Whether this is a folder of logs, of the last run or an earlier one."""
    return path.name == "logs" or path.name.startswith("logs.")


def prune(base: Path, keep: int = KEPT_CLUSTERS) -> list[Path]:
    """Remove the oldest folders under ``base`` that hold nothing but logs, all but ``keep`` of them; returns which."""
    if not base.is_dir():
        return []
    ended = [folder for folder in base.iterdir() if folder.is_dir() and not folder.is_symlink() and _only_logs(folder)]
    oldest_last = sorted(ended, key=lambda folder: (folder / "logs").stat().st_mtime, reverse=True)
    for folder in oldest_last[keep:]:
        shutil.rmtree(folder, ignore_errors=True)
    return oldest_last[keep:]


def _only_logs(folder: Path) -> bool:
    return (folder / "logs" / "progress.jsonl").is_file() and all(are_logs(entry) for entry in folder.iterdir())


def reasons(log: Path, count: int = 3) -> list[str]:
    """The last few different things that a log says, oldest first: of an entry in JSON its event and the end of its
    exception, of a traceback its last line."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    found: dict[str, None] = {}
    for line in reversed(lines):
        text = _reason(line)
        if text:
            found.setdefault(text)
        if len(found) == count:
            break
    return list(found)[::-1]


def _reason(line: str) -> str:
    """What a line says, in words; empty where that is nothing for a person: frames of a traceback, halves of lines."""
    if line.startswith("{"):
        try:
            entry = json.loads(line)
        except ValueError:
            return ""
        error = str(entry.get("error") or entry.get("exception", "").strip().rpartition("\n")[2])
        return ": ".join(part for part in (str(entry.get("event", "")), error) if part)
    if line.startswith((" ", "\t", "Traceback ", "During handling", "The above exception")):
        return ""
    return _NATS_PREFIX.sub("", line).strip()
