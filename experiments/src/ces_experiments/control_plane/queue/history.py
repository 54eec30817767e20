"""How jobs fared in the queue, read off the event log. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ces_common.jobfile import JobFile
from ces_experiments.common.spread import spread

OVER = ("succeeded", "failed", "cancelled")


@dataclass
class Fate:
    """Times of the log: when a job was first queued, when its first plan was committed, when it was over."""

    name: str
    queued: datetime
    planned: datetime | None = None
    over: datetime | None = None
    state: str = "queued"
    plans: int = 0

    @property
    def waited_s(self) -> float | None:
        return None if self.planned is None else (self.planned - self.queued).total_seconds()


def fates(events: Iterable[Mapping[str, Any]]) -> list[Fate]:
    """Of all jobs, in the order in which they were submitted."""
    found: dict[str, Fate] = {}
    for event in events:
        _, _, aggregate, kind = event["type"].split(".")
        if aggregate != "job" or kind == "waiting":
            continue
        time, data = datetime.fromisoformat(event["time"]), event["data"]
        fate = found.setdefault(data["job"], Fate(data["name"], time))
        fate.state = kind
        if kind == "planned":
            fate.planned = fate.planned or time
            fate.plans += 1
        if kind in OVER:
            fate.over = time
    return list(found.values())


def longest_queue(fates: Sequence[Fate]) -> int:
    """The most jobs that waited for their first plan at any moment."""
    ends = [fate.planned or fate.over for fate in fates]
    steps = sorted([(fate.queued, 1) for fate in fates] + [(end, -1) for end in ends if end is not None])
    most = waiting = 0
    for _, step in steps:
        waiting += step
        most = max(most, waiting)
    return most


def seconds(fates: Sequence[Fate]) -> float:
    """From the first submission to the last job's end."""
    ends = [fate.over for fate in fates if fate.over is not None]
    return (max(ends) - min(fate.queued for fate in fates)).total_seconds()


def waits(fates: Sequence[Fate], jobs: Mapping[str, JobFile]) -> dict[str, dict[str, Any]]:
    """Seconds until the first plan: ``all``, and by tenant, priority and number of tasks. ``jobs``: by name."""
    kinds: dict[str, Callable[[JobFile], str]] = {
        "tenant": lambda job: job.tenant,
        "priority": lambda job: f"{job.priority:2}",
        "tasks": lambda job: f"{sum(group.replicas for group in job.tasks)}",
    }
    known = [(jobs[fate.name], fate.waited_s) for fate in fates if fate.waited_s is not None]
    found = {"all": spread(waited for _, waited in known)}
    for kind, of in kinds.items():
        for value in sorted({of(job) for job, _ in known}):
            found[f"{kind} {value}"] = spread(waited for job, waited in known if of(job) == value)
    return found
