"""The online benchmark: the same jobs arrive at the same clusters, once for each solver and offered load."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from rich.progress import Progress

from ces_core.model.problem import Cluster
from ces_core.network.cache import paths_of
from ces_core.registry import get_solver
from ces_core.warm_up import warm_up
from ces_experiments.common import words
from ces_experiments.common.cells import each
from ces_experiments.common.console import counted
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.queue import trace as traces
from ces_experiments.queue.raw import job_rows
from ces_sim.arrivals import TimedJob, from_trace, poisson
from ces_sim.cluster import simulate
from ces_sim.offered import drawn_cluster, paced
from ces_sim.outcome import Outcome
from ces_sim.queue_policy import FirstComeFirstServed
from ces_sim.rounds import derived_seed

POLICIES = {policy.name: policy for policy in (FirstComeFirstServed(), FirstComeFirstServed(backfill=False))}


class Run(NamedTuple):
    """One simulation. ``load``: as results name it."""

    load: str
    solver: str
    repeat: int
    outcome: Outcome


@dataclass(frozen=True)
class Question:
    """What is compared. ``repeats`` clusters and sequences of jobs are drawn; every solver meets all of them at every
    load. ``trace`` gives arrivals, durations and sizes in place of chance; a load of None keeps its arrivals."""

    loads: tuple[float | None, ...]
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

    @property
    def simulations(self) -> int:
        return len(self.loads) * self.repeats * len(self.solvers)

    def cluster(self, repeat: int) -> Cluster:
        return drawn_cluster(self.regime, derived_seed(self.seed, repeat), nodes=self.nodes, topology=self.topology)

    def workload(self, repeat: int) -> list[TimedJob]:
        """The jobs in their order; at what pace they come depends on the load, see :func:`ces_sim.offered.paced`."""
        seed = derived_seed(self.seed, repeat, 1)
        if self.trace is not None:
            return from_trace(self.trace, seed, limit=self.jobs, largest=max(self.tasks), regime=self.regime)
        return poisson(self.jobs, 1.0, self.duration_s, self.tasks, seed, regime=self.regime)

    def runs(self) -> Iterator[Run]:
        """All simulations. Raises BadDecisionError."""
        for name in self.solvers:
            warm_up(get_solver(name))
        cells = [(repeat, load, name) for repeat in range(self.repeats) for load in self.loads for name in self.solvers]
        yield from each(self._run, cells)

    def _run(self, cell: tuple[int, float | None, str]) -> Run:
        repeat, load, name = cell
        cluster, jobs = _drawn(self, repeat)
        arriving = list(jobs) if load is None else paced(jobs, cluster, load)
        outcome = simulate(
            cluster, arriving, get_solver(name), POLICIES[self.policy],
            patience_s=self.patience_s, seed=self.seed, time_limit_s=self.time_limit_s,
        )  # fmt: skip
        return Run(words.load(load), name, repeat, outcome)


@lru_cache(maxsize=1)
def _drawn(question: Question, repeat: int) -> tuple[Cluster, list[TimedJob]]:
    """The same for all loads and solvers, which come one after the other."""
    cluster = question.cluster(repeat)
    paths_of(cluster.topology).warm()
    return cluster, question.workload(repeat)


def checked(*, loads: tuple[float, ...], trace: Path | None, as_timed: bool, **values: Any) -> Question:
    """A question whose trace can be read. Raises typer.BadParameter."""
    question = Question(loads=traces.loads(loads, trace, as_timed), trace=trace, **values)
    traces.looked_at(trace, lambda: question.workload(0))
    return question


def measure(question: Question, progress: Progress) -> Found:
    """Per load and solver, spreads over the repeats (of times: over all decisions). Raises BadDecisionError."""
    advance = counted(progress, "simulations", question.simulations)
    found: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    runs: list[dict[str, Any]] = []
    jobs: list[dict[str, Any]] = []
    for load, name, repeat, outcome in question.runs():
        found[load][name].append(outcome)
        where = {"load": load, "repeat": repeat, "solver": name}
        runs.append(where | outcome.figures())
        jobs += job_rows(outcome, where)
        advance()
    told = asdict(question) | {"trace": question.trace.name if question.trace else None}
    loads = {
        load: {"solvers": {name: summary(outcomes) for name, outcomes in solvers.items()}}
        for load, solvers in found.items()
    }
    return Found({"question": told, "loads": loads}, raw={"runs.csv": runs, "jobs.csv": jobs})


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What one solver's runs at one load come to."""
    figures = [outcome.figures() for outcome in outcomes]
    found: dict[str, Any] = {
        what: spread(value for each in figures if (value := each[what]) is not None) for what in figures[0]
    }
    found["wall_ms"] = spread(wall * 1e3 for outcome in outcomes for wall in outcome.decision_wall_s)
    blocked: Counter[str] = Counter()
    for outcome in outcomes:
        blocked.update(outcome.blocked_by)
    return found | {"blocked_by": dict(blocked.most_common())}
