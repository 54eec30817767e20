"""What became of the jobs of one run, and what several runs tell together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from ces_common.states import JobState
from ces_experiments.common.spread import spread
from ces_experiments.common.ways import Run, by_way, in_both, pairs, succeeded
from ces_experiments.malleable.cpu.courses import Course, courses, cpu_seconds_held
from ces_experiments.malleable.cpu.jobs import RULES, CpuJob, asked

GOT_LEAST = 0.9
"""Of the CPU time that workers hold, what they get where the machine is not too busy."""

Burnt = Mapping[str, Mapping[str, float]]
"""By task: what its program said in the end."""


def record(
    events: Iterable[Mapping[str, Any]], jobs: Mapping[str, CpuJob], way: str, burnt: Mapping[str, Burnt]
) -> dict[str, Any]:
    """One run, for ``results.json``. ``jobs``, ``burnt``: by the ids that the jobs were given."""
    told = courses(events, dict.fromkeys(jobs, asked(way)))
    return {"jobs": [_job(job, told[name], burnt.get(name, {})) for name, job in jobs.items() if name in told]}


def _job(job: CpuJob, course: Course, burnt: Burnt) -> dict[str, Any]:
    """Times in seconds since its submission. ``levels``: millicores of each worker, from when on. ``spent_s``,
    ``held_s``: CPU-seconds that its workers spent, and that they held meanwhile; ``ran_s``: how long that was, for all
    workers together. ``known_s``: from the end of its last program until it was over."""
    over = course.queued if course.over is None else course.over
    told = {task: said for task, said in burnt.items() if task in course.held}
    return {
        "name": job.name,
        "workers": job.workers,
        "work_s": job.work_s,
        "fate": course.fate,
        "took_s": over - course.queued,
        "waited_s": (over if course.running is None else course.running) - course.queued,
        "again": max(0, course.starts - 1),
        "levels": [[at - course.queued, cpu] for at, cpu in course.levels],
        "spent_s": sum(said["spent_s"] for said in told.values()),
        "held_s": sum(cpu_seconds_held(course.held[task], said["began"], said["ended"]) for task, said in told.items()),
        "ran_s": sum(said["ended"] - said["began"] for said in told.values()),
        "known_s": over - max((said["ended"] for said in told.values()), default=over),
    }


def got(runs: Iterable[Run]) -> float | None:
    """What workers spent, of what they held; None where none has told."""
    jobs = [job for run in runs for job in run["jobs"]]
    held_s = sum(job["held_s"] for job in jobs)
    return sum(job["spent_s"] for job in jobs) / held_s if held_s else None


def starved(run: Run) -> bool:
    """Whether the machine was too busy to give workers what they held."""
    share = got([run])
    return share is not None and share < GOT_LEAST


def summary(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """By way, over its runs: completion and waiting times of the jobs that succeeded, ``p95`` of the former, and how
    long their ends remained unknown; how many began again; the mean amount of a worker's CPU in millicores, and how
    often it changed for a job; what of it workers got; the share of a core that the central services took."""
    found: dict[str, dict[str, Any]] = {}
    for way, own in by_way(runs).items():
        jobs = [job for run in own for job in run["jobs"]]
        done = [job for run in own for job in succeeded(run)]
        ran_s = sum(job["ran_s"] for job in jobs)
        found[way] = {
            "jobs": len(jobs),
            "succeeded": len(done),
            "again": sum(job["again"] for job in jobs),
            "took_s": spread(job["took_s"] for job in done),
            "p95": percentile([job["took_s"] for job in done], 95),
            "waited_s": spread(job["waited_s"] for job in done),
            "known_s": spread(job["known_s"] for job in done),
            "cpu": 1000 * sum(job["held_s"] for job in jobs) / ran_s if ran_s else None,
            "changes": spread(len(job["levels"]) - 1 for job in done),
            "got": got(own),
            "services": fmean(run["services_s"] / max(run["took_s"], 1) for run in own),
        }
    return found


def paired(runs: Sequence[Run]) -> dict[tuple[str, str], dict[str, Any]]:
    """By rule and another way: the rule less that, seed by seed, of the jobs that succeeded in both. Against all fixed
    amounts, and the rules before it. ``took_s``, ``p95``: mean completion time and its 95th percentile; ``part``: the
    former as a part of the other's. ``seeds``: both means, by seed."""
    found = {}
    ways = sorted(by_way(runs), key=lambda way: (way in RULES, RULES.index(way) if way in RULES else 0))
    for rule, way in ((rule, way) for i, rule in enumerate(ways) if rule in RULES for way in ways[:i]):
        told = {}
        for one, other in pairs(runs, rule, way):
            if both := in_both(one, other):
                told[str(one["seed"])] = [[took[i] for took in both] for i in (0, 1)]
        means = {seed: [fmean(each) for each in took] for seed, took in told.items()}
        found[rule, way] = {
            "took_s": spread(first - second for first, second in means.values()),
            "part": spread(first / second - 1 for first, second in means.values()),
            "p95": spread(percentile(first, 95) - percentile(second, 95) for first, second in told.values()),
            "seeds": means,
        }
    return found


def percentile(values: Sequence[float], at: float) -> float:
    """0 where there is no value."""
    return float(np.percentile(values, at)) if values else 0.0


def unsuccessful(runs: Iterable[Run]) -> int:
    return sum(job["fate"] != JobState.SUCCEEDED for run in runs for job in run["jobs"])
