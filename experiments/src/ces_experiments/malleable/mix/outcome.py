"""What became of the jobs of one run, and what several runs of a mix tell together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np

from ces_common.states import JOB_OVER, JobState
from ces_experiments.common.spread import spread
from ces_experiments.common.ways import by_way, in_both, moment, pairs
from ces_experiments.malleable.mix.jobs import MALLEABLE, MixJob
from ces_experiments.malleable.mix.resizes import Notes, resizes

AIM_S = 3.0
"""What the 95th percentile of the control plane's share of a resize is to be below."""
REFUSED = "deadline:"
"""How the reason of a job begins that was refused for its deadline."""
PARTS = {
    "control": "**the control plane's share**",
    "whole": "all of it",
    "commit": "until it is committed",
    "stop": "until the former workers are gone",
    "saving": "of that rank 0's checkpoint",
    "network": "until the new network is in place",
    "start": "until the new workers run",
    "still": "from SIGTERM to steps at the new size",
}
"""Times of a resize, and what tables call them."""


@dataclass(frozen=True)
class Fate:
    """``fate``: succeeded, refused, failed or cancelled; ``took_s``: from its submission to its end; ``within_s``: its
    deadline, likewise. ``size``: what a rigid job asked for; None for a malleable one."""

    name: str
    fate: str
    took_s: float
    within_s: int
    size: int | None

    @property
    def on_time(self) -> bool:
        return self.fate == JobState.SUCCEEDED and self.took_s <= self.within_s


def fates(events: Iterable[Mapping[str, Any]], jobs: Mapping[str, MixJob], way: str) -> list[Fate]:
    """Of the jobs of a run that is over. ``jobs``: by the ids that they were given."""
    queued: dict[str, float] = {}
    found = []
    for event in events:
        _, _, aggregate, kind = event["type"].split(".")
        name = event["data"].get("job")
        if aggregate != "job" or name not in jobs:
            continue
        queued.setdefault(name, moment(event))
        if kind in {state.value for state in JOB_OVER}:
            job, refused = jobs[name], (event["data"].get("reason") or "").startswith(REFUSED)
            fate = "refused" if kind == JobState.FAILED and refused else kind
            size = None if way == MALLEABLE else job.asked(float(way))
            found.append(Fate(job.name, fate, moment(event) - queued[name], job.within_s, size))
    return found


def record(
    events: Sequence[Mapping[str, Any]], jobs: Mapping[str, MixJob], way: str, notes: Mapping[str, Notes]
) -> dict[str, Any]:
    """One run, for ``results.json``. ``jobs``, ``notes``: by the ids that the jobs were given. ``lost``: steps that
    were done again, over all later starts that rank 0 tells of; ``starts``: how many those are."""
    resized, given_up = resizes(events, notes)
    again = [note for told in notes.values() for note in told[1:] if note["kind"] == "begins"]
    return {
        "jobs": [asdict(fate) | {"on_time": fate.on_time} for fate in fates(events, jobs, way)],
        "resizes": [asdict(each) | {"whole": each.whole, "control": each.control} for each in resized],
        "given_up": given_up,
        "starts": len(again),
        "lost": sum(note["lost"] for note in again),
    }


def summary(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By way, in the order of the runs: over its runs the jobs by fate, the share on time, completion times."""
    found: dict[str, dict[str, Any]] = {}
    for way, own in by_way(runs).items():
        jobs = [job for run in own for job in run["jobs"]]
        found[way] = {
            "jobs": len(jobs),
            "on_time": sum(job["on_time"] for job in jobs),
            "share": spread(on_time(run) for run in own),
            "late": sum(job["fate"] == JobState.SUCCEEDED and not job["on_time"] for job in jobs),
            **{fate: sum(job["fate"] == fate for job in jobs) for fate in ("refused", "failed", "cancelled")},
            "took_s": spread(job["took_s"] for job in jobs if job["fate"] == JobState.SUCCEEDED),
            **{what: sum(run[what] for run in own) for what in ("given_up", "starts", "lost")},
            "resizes": sum(len(run["resizes"]) for run in own),
        }
    return found


def on_time(run: Mapping[str, Any]) -> float:
    """The share of the jobs submitted."""
    return fmean(job["on_time"] for job in run["jobs"])


def paired(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By rigid way: how far malleable jobs are above it, seed by seed, where both were run. ``share``: on time, of
    those submitted; ``took_s``: mean completion time of the jobs that succeeded in both; ``seeds``: numbers of jobs on
    time, by seed."""
    found = {}
    for way in (each for each in by_way(runs) if each != MALLEABLE):
        both = pairs(runs, MALLEABLE, way)
        found[way] = {
            "share": spread(on_time(one) - on_time(other) for one, other in both),
            "took_s": spread(_longer(one, other) for one, other in both),
            "seeds": {str(one["seed"]): [_count(one), _count(other)] for one, other in both},
        }
    return found


def _count(run: Mapping[str, Any]) -> int:
    return sum(job["on_time"] for job in run["jobs"])


def _longer(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """How much longer the one's jobs took that succeeded in both, in the mean."""
    both = in_both(one, other)
    return fmean(first - second for first, second in both) if both else 0.0


def parts(runs: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """By part of a resize: how many there are, and seconds at percentiles. Empty where no job was resized."""
    every = [each for run in runs for each in run["resizes"]]
    found = {}
    for part in PARTS:
        values = [each[part] for each in every if each[part] is not None]
        if values:
            p50, p95, most = np.percentile(values, (50, 95, 100)).tolist()
            found[part] = {"n": len(values), "p50": p50, "p95": p95, "most": most}
    return found
