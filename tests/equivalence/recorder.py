"""Recording all parts of a tree into a folder, and asking the same questions again."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from equivalence.parts import PARTS
from equivalence.record import MANIFEST, Comparison, Part, read_part, write_part

FORMAT = 1
TREE = Path(__file__).resolve().parents[2]
LIBRARIES = ("numpy", "scipy", "numba", "onnxruntime", "torch")
CHANGED = "+"
"""Ends the name of a commit where files have changed since."""
NAMED = 5
"""Differences of each part that are told."""


class RecordError(Exception):
    """A folder holds no record that can be checked."""


def record(folder: Path, names: Sequence[str], share: float = 1.0) -> None:
    """Records these parts; others that the folder has of the same commit stay. The manifest tells what is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    commit = commit_of(TREE)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "commit": commit,
        "parts": {},
        "skipped": {},
        "made_with": _made_with(),
    }
    with suppress(RecordError):
        earlier = manifest_of(folder)
        if earlier["commit"] == commit and not commit.endswith(CHANGED):
            manifest = earlier
    for name in names:
        part = PARTS[name]
        manifest["parts"].pop(name, None)
        if (why := part.missing()) is not None:
            print(f"{name}: skipped, {why}", flush=True)
            manifest["skipped"][name] = why
            _write_manifest(folder, manifest)
            continue
        started, counted = time.process_time(), [0]
        cases = write_part(folder, name, _lines(part, share, counted))
        seconds = round(time.process_time() - started, 1)
        manifest["parts"][name] = {"cases": cases, "answers": counted[0], "cpu_s": seconds}
        print(f"{name}: {cases} cases, {counted[0]} answers in {seconds} s of CPU time", flush=True)
        _write_manifest(folder, manifest)


def check(folder: Path, names: Sequence[str]) -> bool:
    """Whether the present tree gives the recorded answers; prints a table, and the first differences. Raises
    RecordError."""
    manifest = manifest_of(folder)
    here, there = _made_with(), manifest["made_with"]
    if here != there:
        unlike = ", ".join(
            f"{name} {there.get(name)} -> {here.get(name)}" for name in here if here[name] != there.get(name)
        )
        print(f"note: recorded with other software or hardware: {unlike}")
    rows, differences = [], []
    for name in names:
        if name not in manifest["parts"]:
            print(f"{name}: not in the record ({manifest['skipped'].get(name, 'was not asked for')})")
            continue
        part = PARTS[name]
        if (why := part.missing()) is not None:
            print(f"{name}: skipped, {why}")
            continue
        found = _compared(folder, part, manifest["parts"][name]["cases"])
        lines = sorted(found.equal.keys() | found.differing.keys()) if part.by_name else []
        rows += [(f"{name}: {who}", found.equal.get(who, 0), found.differing.get(who, 0)) for who in lines]
        if not lines:
            rows.append((name, sum(found.equal.values()), sum(found.differing.values())))
        differences += [f"{name}, {each}" for each in found.differences[:NAMED]]
    show(("what", "compared", "equal", "differing"), [(who, a + b, a, b) for who, a, b in rows])
    compared, differing = sum(a + b for _, a, b in rows), sum(b for _, _, b in rows)
    for each in differences:
        print(f"differs: {each}")
    print(f"{compared} answers of {manifest['commit'][:12]} compared, {differing} differ")
    return bool(compared) and not differing


def manifest_of(folder: Path) -> dict[str, Any]:
    """Raises RecordError."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    except OSError as error:
        raise RecordError(f"{folder} holds no whole record: {error.strerror}") from error
    if manifest["format"] != FORMAT:
        raise RecordError(f"{folder} is of format {manifest['format']}, not {FORMAT}: record it again")
    return manifest


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


def commit_of(tree: Path) -> str:
    """The full name of the commit that a tree is at, marked where files have changed since."""
    asked = subprocess.run(["git", "-C", str(tree), "rev-parse", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run(["git", "-C", str(tree), "status", "--porcelain"], capture_output=True, text=True).stdout
    return (asked.stdout.strip() or "unknown") + (CHANGED if changed.strip() else "")


def show(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A plain table: the first column to the left, numbers to the right."""
    table = [[*map(str, row)] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for row in table:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(cells).rstrip())


def _lines(part: Part, share: float, counted: list[int]) -> Iterator[dict[str, Any]]:
    for number, case in enumerate(part.draw(share), 1):
        answers = part.answer(case)
        counted[0] += len(answers)
        _progress(f"{part.name}: {number} recorded")
        yield {"case": case, "answers": answers}


def _compared(folder: Path, part: Part, cases: int) -> Comparison:
    found = Comparison()
    for number, line in enumerate(read_part(folder, part.name), 1):
        case = line["case"]
        try:
            answers = part.answer(case)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            answers = {who: {"raised": told} for who in line["answers"]}
        found.add(case["name"], line["answers"], answers)
        _progress(f"{part.name}: {number} of {cases} checked, {sum(found.differing.values())} differ")
    return found


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="\r", file=sys.stderr, flush=True)


def _made_with() -> dict[str, str | None]:
    """What answers may depend on beside the code."""
    found: dict[str, str | None] = {"python": platform.python_version(), "machine": platform.machine()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found
