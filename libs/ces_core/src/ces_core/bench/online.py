"""The online benchmark: the same jobs arrive at the same clusters, once for each solver and offered load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ces_core.bench.spread import spread
from ces_core.generate import random_instance
from ces_core.instance import read_instance
from ces_core.problem import Cluster
from ces_core.simulator.online import simulate
from ces_core.simulator.outcome import Moment, Outcome
from ces_core.simulator.policy import FirstComeFirstServed
from ces_core.simulator.rounds import derived_seed
from ces_core.simulator.workload import TimedJob, from_trace, poisson
from ces_core.solvers import get_solver
from ces_core.solvers.warm import warm_up

POLICIES = {policy.name: policy for policy in (FirstComeFirstServed(), FirstComeFirstServed(backfill=False))}
FILLING = 0.2
"""The share of the arrivals after which averages over time begin: the cluster starts empty."""
OVER_TIME: Mapping[str, Callable[[Moment], float | None]] = {
    "cpu": lambda moment: moment.cpu,
    "bandwidth": lambda moment: moment.bandwidth,
    "load_imbalance": lambda moment: moment.load_imbalance,
    "bandwidth_satisfaction": lambda moment: moment.bandwidth_satisfaction,
    "composite": lambda moment: moment.composite,
}


@dataclass(frozen=True)
class Question:
    """What is compared. ``repeats`` clusters and sequences of jobs are drawn; every solver meets all of them at every
    load. ``trace`` gives arrivals, durations and sizes in place of chance."""

    loads: tuple[float, ...]
    regime: str
    nodes: int | None
    topology: str
    jobs: int
    tasks: tuple[int, ...]
    duration_s: float
    patience_s: float | None
    policy: str
    repeats: int
    seed: int
    solvers: tuple[str, ...]
    time_limit_s: float | None
    trace: Path | None = None

    def cluster(self, repeat: int) -> Cluster:
        seed = derived_seed(self.seed, repeat)
        return read_instance(
            random_instance(self.regime, seed, nodes=self.nodes, tasks=1, topology=self.topology)
        ).cluster

    def workload(self, repeat: int) -> list[TimedJob]:
        """The jobs in their order; at what pace they come depends on the load, see :func:`paced`."""
        seed = derived_seed(self.seed, repeat, 1)
        if self.trace is not None:
            return from_trace(self.trace, seed, limit=self.jobs, largest=max(self.tasks), regime=self.regime)
        return poisson(self.jobs, 1.0, self.duration_s, self.tasks, seed, regime=self.regime)


def paced(jobs: Sequence[TimedJob], cluster: Cluster, load: float) -> list[TimedJob]:
    """The same jobs in the same rhythm, at the pace that offers ``load``.

    That is what they ask for, times how long, over what is free at the start, times how long they take to arrive; of
    CPU or memory, whichever is scarcer.
    """
    asked = np.array([[sum(task.cpu for task in job.tasks), sum(task.memory for task in job.tasks)] for job in jobs])
    work = asked.T @ np.array([job.duration_s for job in jobs])
    span = float((work / cluster.node_free[:2].sum(axis=1)).max()) / load
    stretch = span / (jobs[-1].arrival_s or 1.0)
    return [replace(job, arrival_s=job.arrival_s * stretch) for job in jobs]


def compare(question: Question, advance: Callable[[], None]) -> dict[str, Any]:
    """Run them all, and what it comes to: per load and solver, spreads over the repeats (of times: over all decisions).

    Raises BadDecisionError, and ProblemError for a trace that cannot be read.
    """
    runs: dict[float, dict[str, list[Outcome]]] = {
        load: {name: [] for name in question.solvers} for load in question.loads
    }
    for name in question.solvers:
        warm_up(get_solver(name))
    for repeat in range(question.repeats):
        cluster, jobs = question.cluster(repeat), question.workload(repeat)
        cluster.topology.paths.warm()
        for load in question.loads:
            arriving = paced(jobs, cluster, load)
            for name in question.solvers:
                outcome = simulate(
                    cluster,
                    arriving,
                    get_solver(name),
                    POLICIES[question.policy],
                    patience_s=question.patience_s,
                    seed=question.seed,
                    time_limit_s=question.time_limit_s,
                )
                runs[load][name].append(outcome)
                advance()
    told = asdict(question) | {"trace": question.trace.name if question.trace else None}
    loads = {
        f"{load:g}": {"solvers": {name: summary(outcomes) for name, outcomes in found.items()}}
        for load, found in runs.items()
    }
    return {"question": told, "loads": loads}


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What one solver's runs at one load come to."""
    found: dict[str, Any] = {
        "accepted": spread(len(outcome.accepted) / len(outcome.fates) for outcome in outcomes),
        "wait_s": spread(wait for outcome in outcomes if (wait := _mean_wait(outcome)) is not None),
    }
    for what, value in OVER_TIME.items():
        averages = (outcome.average(value, *_window(outcome)) for outcome in outcomes)
        found[what] = spread(average for average in averages if average is not None)
    found["wall_ms"] = spread(wall * 1e3 for outcome in outcomes for wall in outcome.decision_wall_s)
    blocked: Counter[str] = Counter()
    for outcome in outcomes:
        blocked.update(outcome.blocked_by)
    return found | {"blocked_by": dict(blocked.most_common())}


def _mean_wait(outcome: Outcome) -> float | None:
    waits = [fate.waited_s for fate in outcome.accepted if fate.waited_s is not None]
    return sum(waits) / len(waits) if waits else None


def _window(outcome: Outcome) -> tuple[float, float]:
    arrivals = [fate.job.arrival_s for fate in outcome.fates]
    return arrivals[int(FILLING * len(arrivals))], arrivals[-1]
