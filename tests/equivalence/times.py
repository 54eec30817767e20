"""Paired decision times: two trees decide the same instances in turn, each in a process of its own.

The process of a tree (``python -m equivalence serve FOLDER``) reads lines ``{"case": number, "solver": name}``, and
answers each with the seconds of CPU time that the decision took: other work on the machine hardly shows in those.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from equivalence.core_adapter import RENAMED, timed_solver
from equivalence.record import read_part
from equivalence.recorder import RecordError, show

PART = "placements"
TIMED = ("default", "search", "greedy", "exact", "ces-ppo", "kubernetes")
"""By the names of this tree."""
EVERY = 7
"""Every so many recorded instances are timed: some 40 of 300."""
ROUNDS = 5
"""Both trees decide each instance so often in turn; the quickest of each counts."""


def serve(folder: Path) -> None:
    """Measures what standard input asks for."""
    cases = _cases(folder, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        decide = timed_solver(cases[asked["case"]], asked["solver"])
        started = time.process_time()
        decide()
        print(time.process_time() - started, flush=True)


def compare_times(folder: Path, trees: Sequence[tuple[Path, Mapping[str, str]]]) -> None:
    """Prints medians over instances for the old tree and the new one, and the median of their ratios. ``trees``: where
    to start a process, and its environment. Raises RecordError where a process ends early."""
    asked = {
        number: [name for name in case["ask"] if RENAMED.get(name, name) in TIMED]
        for number, case in _cases(folder, EVERY).items()
    }
    found: dict[str, list[tuple[float, float]]] = {}
    with ExitStack() as stack:
        old, new = (stack.enter_context(_process(folder, *tree)) for tree in trees)
        for number, names in asked.items():
            for name in names:
                pairs = [(_measured(old, number, name), _measured(new, number, name)) for _ in range(ROUNDS + 1)]
                quickest = min(each for each, _ in pairs[1:]), min(each for _, each in pairs[1:])
                found.setdefault(name, []).append(quickest)
        for process in (old, new):
            process.terminate()
    rows = []
    for name, pairs in found.items():
        medians = (f"{1e3 * statistics.median(side):.2f}" for side in zip(*pairs, strict=True))
        ratio = statistics.median(after / before for before, after in pairs)
        rows.append((f"time of {name}", len(pairs), *medians, f"{ratio:.3f}"))
    show(("what", "instances", "old ms", "new ms", "ratio"), rows)


def _cases(folder: Path, every: int) -> dict[int, dict[str, Any]]:
    lines = enumerate(read_part(folder, PART))
    return {number: line["case"] for number, line in lines if number % every == 0}


def _process(folder: Path, tree: Path, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "equivalence", "serve", str(folder)]
    return subprocess.Popen(
        command, cwd=tree, env=dict(environment), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _measured(process: subprocess.Popen[str], case: int, solver: str) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"case": case, "solver": solver}) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise RecordError(f"the process that decides case {case} by {solver} has ended")
    return float(answer)
