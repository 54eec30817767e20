"""Another commit of this repository: its tree in a folder of its own, and what its own recorder records."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from equivalence.recorder import TREE, RecordError, check, manifest_of
from equivalence.times import PART, compare_times

KEPT = TREE / "build" / "equivalence"
"""Where records of commits and compiled code are kept; git ignores it."""


def compare(name: str, parts: Sequence[str], *, fresh: bool, times: bool) -> bool:
    """Whether the present tree gives the answers of a commit, which are recorded where no whole record is kept from an
    earlier comparison. Raises RecordError."""
    commit = _git("rev-parse", "--verify", f"{name}^{{commit}}")
    folder = KEPT / commit[:12]
    with tree_of(commit) as tree:
        if fresh or not _recorded(folder, commit, parts):
            if not (tree / "tests" / "equivalence").is_dir():
                raise RecordError(f"commit {commit[:12]} has no recorder: name a later one")
            print(f"recording commit {commit[:12]}: some minutes where its solvers must be compiled", flush=True)
            command = [sys.executable, "-m", "equivalence", "record", str(folder), *parts]
            if subprocess.run(command, cwd=tree, env=environment_of(tree, KEPT / "compiled")).returncode:
                raise RecordError(f"the recorder of commit {commit[:12]} failed")
        same = check(folder, parts)
        if times and PART in parts:
            trees = [(tree, environment_of(tree, KEPT / "compiled")), (TREE, environment_of(TREE))]
            compare_times(folder, trees)
    return same


@contextmanager
def tree_of(commit: str) -> Iterator[Path]:
    """The commit's files, removed afterwards. Their times are those of the commit, so that compiled code that was kept
    for the same commit is found again, and none of another."""
    tree = KEPT / "tree"
    _remove(tree)
    KEPT.mkdir(parents=True, exist_ok=True)
    _git("worktree", "add", "--detach", str(tree), commit)
    try:
        when = int(_git("log", "-1", "--format=%ct", commit))
        for file in tree.rglob("*.py"):
            os.utime(file, (when, when))
        yield tree
    finally:
        _remove(tree)


def environment_of(tree: Path, compiled: Path | None = None) -> dict[str, str]:
    """That of a process that imports the code of a tree. ``compiled``: where numba keeps what it compiles."""
    sources = [tree / "tests", *sorted(tree.glob("libs/*/src")), *sorted(tree.glob("services/*/src"))]
    sources += [*sorted(tree.glob("workloads/src")), *sorted(tree.glob("experiments/src"))]
    kept = {} if compiled is None else {"NUMBA_CACHE_DIR": str(compiled)}
    return dict(os.environ) | {"PYTHONPATH": os.pathsep.join(map(str, sources))} | kept


def _recorded(folder: Path, commit: str, parts: Sequence[str]) -> bool:
    try:
        manifest = manifest_of(folder)
    except RecordError:
        return False
    return manifest["commit"] == commit and {*parts} <= {*manifest["parts"], *manifest["skipped"]}


def _remove(tree: Path) -> None:
    if tree.exists():
        _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(TREE), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RecordError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()
