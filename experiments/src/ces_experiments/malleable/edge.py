"""EdgeFlow on published traces with idle edge servers that are simulated: against its peers, itself without them, and
another number of everything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from rich.progress import Progress

from ces_core.malleable.edgeflow import EdgeFlow, Reading
from ces_core.malleable.model import MalleableJob
from ces_experiments.common.cells import each
from ces_experiments.common.console import counted
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.malleable.contenders import POLICIES, Setting
from ces_experiments.malleable.inputs import Input
from ces_sim.malleable.availability import Tides, idle_times, server_speeds
from ces_sim.malleable.engine import World, simulate
from ces_sim.malleable.outcome import feasible
from ces_sim.malleable.traces import TracedJob
from ces_sim.rounds import derived_seed

EDGE: Mapping[str, Reading] = {
    "edgeflow-donate": "donate", "edgeflow-sacrifice": "sacrifice", "edge-overflow": "overflow",
}  # fmt: skip
"""Name -> reading of those that use edge servers."""
FIRST = "edgeflow-donate"
"""Whose gains are told."""
PEERS = tuple(POLICIES)
MEASURES = ("satisfied", "refused", "late", "migrations", "crossings", "cost_s", "edge_share")


@dataclass(frozen=True)
class Point:
    """``arrivals``: how many times faster jobs come; ``gpus`` in the cloud; ``servers`` on the edge, of which each has
    ``speed`` of a GPU; ``ease``: by which the time until each deadline is multiplied."""

    arrivals: float
    gpus: int
    servers: int
    speed: float
    ease: float


@dataclass(frozen=True)
class Question:
    """``base`` is what the sweeps begin with; each changes one of its values. ``repeats``: availability traces for the
    first of those that use edge servers at the base; ``fewer``: for the others there, and elsewhere."""

    inputs: tuple[Input, ...]
    base: Point
    sweeps: Mapping[str, tuple[float, ...]]
    repeats: int
    fewer: int
    seed: int
    processes: int

    @staticmethod
    def of(
        *, inputs: tuple[Input, ...], arrivals: float, gpus: int, servers: int, speed: float, ease: float,
        sweep_arrivals: Sequence[float], sweep_gpus: Sequence[float], sweep_servers: Sequence[float],
        sweep_speeds: Sequence[float], **values: Any,
    ) -> Question:  # fmt: skip
        sweeps = {
            "arrivals": tuple(sweep_arrivals),
            "gpus": tuple(sweep_gpus),
            "servers": tuple(sweep_servers),
            "speed": tuple(sweep_speeds),
        }
        return Question(inputs, Point(arrivals, gpus, servers, speed, ease), sweeps, **values)

    def points(self) -> Iterator[tuple[str, Point]]:
        """The base, and every value of every sweep, by what is swept."""
        yield "base", self.base
        for what, values in self.sweeps.items():
            kind = type(getattr(self.base, what))
            for value in values:
                yield what, replace(self.base, **{what: kind(value)})


@dataclass(frozen=True)
class Task:
    """One simulation. ``repeat``: of the availability traces; 0 for those that use none."""

    given: Input
    point: Point
    policy: str
    repeat: int
    seed: int


@lru_cache(maxsize=8)
def _traced(given: Input) -> list[TracedJob]:
    return given.jobs()


def jobs_at(given: Input, point: Point) -> list[MalleableJob]:
    """The trace's jobs at the point's rate of arrivals and ease of deadlines, which are counted from the arrivals."""
    found = [job.malleable(point.gpus) for job in _traced(given)]
    begin = found[0].arrived_s
    moved = []
    for job in found:
        arrived = begin + (job.arrived_s - begin) / point.arrivals
        due = arrived + (job.deadline_s - job.arrived_s) * point.ease
        moved.append(replace(job, arrived_s=arrived, deadline_s=due))
    return moved


def run(task: Task) -> dict[str, float]:
    """The outcome's figures."""
    given, point = task.given, task.point
    jobs = jobs_at(given, point)
    if task.policy not in EDGE:
        setting = Setting.of(replace(given, cluster=f"n1g{min(point.gpus, 8)}"), _traced(given), task.seed)
        return simulate(jobs, POLICIES[task.policy](setting), World(point.gpus)).figures()
    tides = Tides(point.servers, speed=point.speed)
    seed = derived_seed(task.seed, task.repeat)
    begin, end = jobs[0].arrived_s, max(job.deadline_s for job in jobs)
    world = World(
        point.gpus, edge=idle_times(tides, begin, end, seed), speeds=server_speeds(tides, seed), believed=point.speed
    )
    return simulate(jobs, EdgeFlow(float(given.slot_s), EDGE[task.policy]), world).figures()


def tasks(question: Question) -> list[Task]:
    """Every simulation once. Only the number of jobs and of GPUs matters to who uses no edge servers."""
    found: dict[Task, None] = {}
    for given in question.inputs:
        for what, point in question.points():
            for policy in EDGE if what == "base" else (FIRST,):
                all_of_them = what == "base" and policy == FIRST
                for repeat in range(question.repeats if all_of_them else question.fewer):
                    found[Task(given, point, policy, repeat, question.seed)] = None
            for policy in PEERS:
                found[_without_edge(given, question, point, policy)] = None
    return list(found)


def _without_edge(given: Input, question: Question, point: Point, policy: str) -> Task:
    plain = replace(point, servers=0, speed=0.0)
    return Task(given, plain, policy, 0, question.seed)


def measure(question: Question, progress: Progress) -> Found:
    """By input and point: spreads of every policy's figures, and of how far EdgeFlow is above each peer, trace of
    availability by trace of availability."""
    simulations = tasks(question)
    step = counted(progress, "simulations", len(simulations))
    done: dict[Task, dict[str, float]] = {}
    for task, figures in zip(simulations, each(run, simulations, question.processes), strict=True):
        done[task] = figures
        step()
    found = {
        given.trace: [
            {"sweep": what, **asdict(point), **_told(question, given, point, done)} for what, point in question.points()
        ]
        for given in question.inputs
    }
    asked = asdict(question) | {"inputs": [given.title for given in question.inputs]}
    return Found({"question": asked, "inputs": found, "simulations": len(simulations)})


def _told(question: Question, given: Input, point: Point, done: Mapping[Task, dict[str, float]]) -> dict[str, Any]:
    runs = defaultdict[str, list[dict[str, float]]](list)
    for task, figures in done.items():
        if (task.given, task.point) == (given, point) and task.policy in EDGE:
            runs[task.policy].append(figures)
    for policy in PEERS:
        runs[policy].append(done[_without_edge(given, question, point, policy)])
    first = runs[FIRST]
    return {
        "feasible": feasible(jobs_at(given, point)),
        "policies": {
            name: {what: spread(run[what] for run in each) for what in MEASURES} for name, each in runs.items()
        },
        "gains": {name: spread(_gains(first, each)) for name, each in runs.items() if name != FIRST},
    }


def _gains(first: Sequence[dict[str, float]], other: Sequence[dict[str, float]]) -> list[float]:
    """How far the first is above the other, on the same availability where that matters to both."""
    others = list(other) if len(other) > 1 else list(other) * len(first)
    return [one["satisfied"] - against["satisfied"] for one, against in zip(first, others, strict=False)]
