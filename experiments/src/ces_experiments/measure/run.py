"""Measures emulated nodes as their agents do, and programs on them. Needs root, for control groups."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import psutil
from rich.progress import Progress

from ces_common.cgroups import Group, hierarchies
from ces_common.messages.scores import Measurement
from ces_common.scores import NOISY_OTHERS
from ces_experiments.common.interruption import ended_tidily, undisturbed
from ces_experiments.common.machine import usable_cores
from ces_experiments.common.report import Found
from ces_experiments.measure import program
from ces_experiments.measure.question import Question
from ces_testbed.errors import TestbedError

T = TypeVar("T", bound=dict[str, Any])
PATIENCE_S = 60.0
_AMPLE = 2**40


def measure(question: Question, progress: Progress) -> Iterator[Found]:
    """Each finding has all that is known so far."""
    task = progress.add_task("measured", total=question.runs)
    rows: list[dict[str, Any]] = []
    with ended_tidily(), TemporaryDirectory(prefix="ces-measure-") as folder:
        for repeat in range(question.repeats):
            for share in question.in_order(repeat):
                with _node(share) as group:
                    at = {"repeat": repeat, "share": share}
                    rows.append(at | _quietest(question.tries, partial(_scores, group, Path(folder))))
                    progress.advance(task)
                    for name in question.programs:
                        for processes in question.processes:
                            look = partial(_program, group, name, processes, question.seconds)
                            rows.append(at | _quietest(question.tries, look))
                            progress.advance(task)
            yield Found({"question": _told(question), "cores": usable_cores(), "rows": rows})


def _told(question: Question) -> dict[str, Any]:
    return {name: getattr(question, name) for name in question.__dataclass_fields__}


@contextmanager
def _node(share: float) -> Iterator[Group]:
    """A control group that may use so much of this machine. Raises TestbedError."""
    group = Group(hierarchies(), f"ces-measure-{os.getpid()}")
    kept = group.create(cpu=round(1000 * usable_cores() * share), memory=_AMPLE, pids=4096)
    try:
        if "cpu" not in kept:
            raise TestbedError("the kernel limits no CPU here: run it as root, where control groups are mounted")
        yield group
    finally:
        with undisturbed():
            group.kill()
            group.remove()


def _quietest(tries: int, look: Callable[[], T]) -> T:
    """Looks again while others use too much, ``tries`` times at most. The look beside which they used least."""
    best = look()
    for _ in range(tries - 1):
        if best["others"] <= NOISY_OTHERS:
            break
        best = min(best, look(), key=lambda each: each["others"])
    return best


def _scores(group: Group, folder: Path) -> dict[str, Any]:
    """As the agent measures, in a process of its own."""
    process = subprocess.run(
        [sys.executable, "-m", "ces_edge_agent.scores", str(folder)],
        stdout=subprocess.PIPE,
        check=False,
        preexec_fn=group.join,
    )
    told = [Measurement.model_validate_json(line) for line in process.stdout.splitlines()]
    if not told:
        raise TestbedError("nothing could be measured")
    others = max(each.others or 0.0 for each in told)
    return {"others": others, "measured": [each.model_dump(mode="json", exclude_none=True) for each in told]}


def _program(group: Group, name: str, processes: int, seconds: float) -> dict[str, Any]:
    """What its steps took of CPU time, by the control group, and of time."""
    process = subprocess.Popen(
        [sys.executable, program.__file__, name, str(processes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=group.join,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if process.stdout.readline() != "ready\n":
            raise TestbedError(f"{name} does not run here")
        before, machine, began = group.processor_time(), _busy(), time.monotonic()
        process.stdin.write(f"{seconds}\n")
        process.stdin.flush()
        told = process.stdout.readline()
        after, later, took = group.processor_time(), _busy(), time.monotonic() - began
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
    if before is None or after is None:
        raise TestbedError("the kernel counts no CPU time of control groups")
    others = max(later - machine - (after - before), 0.0) / (took * (psutil.cpu_count() or 1))
    steps = json.loads(told)["steps"]
    return {
        "program": name, "processes": processes, "others": others,
        "steps": steps, "cpu_ms": (after - before) * 1e3 / steps, "step_ms": took * 1e3 / steps,
    }  # fmt: skip


def _busy() -> float:
    """Seconds of CPU that this machine has used."""
    spent = psutil.cpu_times()
    return float(sum(spent[:8]) - spent.idle - getattr(spent, "iowait", 0.0))
