"""Another commit of this repository, installed in a folder of its own, and benchmarks of either tree."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from bench_check.benchmarks import Benchmark, Results

TREE = Path(__file__).parents[2]
KEPT = TREE / "build" / "bench-check"
"""Where installed commits and results are kept; git ignores it."""
LIMIT_S = 900


class CheckError(Exception):
    """There is nothing to compare with. The text says why."""


def installed(name: str) -> Path:
    """The commit's files with an environment of their own, kept for the next time. Raises CheckError."""
    commit = _git("rev-parse", "--verify", f"{name}^{{commit}}")
    tree = KEPT / commit[:12]
    if not tree.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        _git("worktree", "prune")
        _git("worktree", "add", "--detach", str(tree), commit)
    print(f"installing commit {commit[:12]}: some minutes the first time", flush=True)
    if subprocess.run(["make", "-s", "install"], cwd=tree, stdin=subprocess.DEVNULL).returncode:
        raise CheckError(f"commit {commit[:12]} cannot be installed")
    return tree


def measured(tree: Path, benchmark: Benchmark, out: Path) -> Results | None:
    """What the tree's own benchmark found; None where it has no such benchmark, or failed: its words are in a log
    beside the results."""
    command = [str(tree / ".venv" / "bin" / "ces"), "bench", *benchmark.command, "--out", str(out)]
    out.mkdir(parents=True, exist_ok=True)
    results = out / "results.json"
    results.unlink(missing_ok=True)
    with (out / "output.log").open("w") as log:
        try:
            ended = subprocess.run(command, cwd=tree, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            return None
    if ended.returncode or not results.exists():
        return None
    found: Results = json.loads(results.read_text())
    return found


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(TREE), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise CheckError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()
