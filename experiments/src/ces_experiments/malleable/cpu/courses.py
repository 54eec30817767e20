"""What the event log tells of jobs: how long they waited and took, and how much CPU their workers had. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ces_common.states import JOB_OVER, JobState
from ces_experiments.common.ways import moment

Steps = list[tuple[float, int]]
"""(moment, millicores) pairs in order: from each moment on, in seconds since 1970, that amount holds."""


@dataclass
class Course:
    """One job's history; moments in seconds since 1970. ``queued``: its first event; ``running``: when all its workers
    ran first; ``over`` and ``fate``: when and how it ended. ``starts``: how often all of them began to run. ``levels``:
    the amount that each worker is to have. ``held``: task -> the amount that it holds: a growth from its commitment on,
    a cut once its node has confirmed it. A new plan discards the ``levels`` and ``held`` before it."""

    queued: float
    running: float | None = None
    over: float | None = None
    fate: str = JobState.QUEUED
    starts: int = 0
    levels: Steps = field(default_factory=list)
    held: dict[str, Steps] = field(default_factory=dict)

    def read(self, what: str, at: float, data: Mapping[str, Any], asked: int) -> None:
        """An event of its job. ``asked``: the millicores that each worker asks for."""
        match what.split("."):
            case "plan", "committed":
                begun = {each["task"]: each.get("cpu_desired") or asked for each in data["allocations"]}
                self.levels = [(at, max(begun.values()))]
                self.held = {task: [(at, cpu)] for task, cpu in begun.items()}
            case "cpu", "committed":
                self.levels.append((at, data["cpu"]))
                for steps in self.held.values():
                    steps.append((at, max(steps[-1][1], data["cpu"])))
            case "cpu", "released":
                self.held[data["task"]].append((at, data["cpu"]))
            case "job", "running":
                self.starts += 1
                self.running = at if self.running is None else self.running
            case "job", state if state in {each.value for each in JOB_OVER}:
                self.over, self.fate = at, state


def courses(events: Iterable[Mapping[str, Any]], asked: Mapping[str, int]) -> dict[str, Course]:
    """By job's id. ``asked``: the jobs, and the millicores that each worker asks for."""
    found: dict[str, Course] = {}
    for event in events:
        job = event["data"].get("job")
        if job in asked:
            at = moment(event)
            what = event["type"].split(".", 2)[2]
            found.setdefault(job, Course(at)).read(what, at, event["data"], asked[job])
    return found


def cpu_seconds_held(steps: Steps, since: float, until: float) -> float:
    """CPU-seconds held between two moments: cores times the seconds for which they were held."""
    ends = [*steps, (until, 0)]
    return sum(cpu / 1000 * max(0.0, min(end, until) - max(begin, since)) for (begin, cpu), (end, _) in pairwise(ends))
