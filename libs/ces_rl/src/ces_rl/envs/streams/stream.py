"""A stream of jobs on one cluster, stopped at every decision, and its copies in which the future is tried out.

Jobs are taken in order of arrival, and who has no place lets those behind it try: ``fcfs-backfill`` of
:mod:`ces_sim.queue_policy`. A job leaves when its patience is over. Events of one moment come in the order of
:mod:`ces_sim.cluster`: ends, arrivals, decisions, then those whose patience is over.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ces_core.model.problem import Cluster, FloatArray, Problem
from ces_core.network.cache import paths_of
from ces_rl.envs.streams.proposals import attitudes, hopeless, propose
from ces_sim.arrivals import TimedJob, poisson
from ces_sim.offered import drawn_cluster, paced
from ces_sim.rounds import derived_seed

NODES, TASKS, MEAN_S = 20, (3, 4, 5, 6, 7, 8), 600.0
"""Nodes of a cluster, sizes of jobs, and how long jobs run and wait on average: as in the online benchmark."""
UNIT_WORK = 165.0 * MEAN_S
"""CPU times seconds that a job of these sizes asks for on average."""
SPARE = 40
"""Jobs beside those that come, from which futures are made up."""


def offered(regime: str, load: float, count: int, seed: int) -> tuple[Cluster, list[TimedJob], list[TimedJob]]:
    """A cluster, the jobs that come to it, and spare ones, as ``ces bench longrun`` draws clusters and jobs for its
    first repeat with this seed."""
    cluster = drawn_cluster(regime, derived_seed(seed, 0), nodes=NODES)
    paths_of(cluster.topology).warm()
    jobs = poisson(count, 1.0, MEAN_S, TASKS, derived_seed(seed, 0, 1), regime=regime)
    spare = poisson(SPARE, 1.0, MEAN_S, TASKS, derived_seed(seed, 0, 2), regime=regime)
    return cluster, paced(jobs, cluster, load), spare


class Kind:
    """What a job asks for, and what it would have alone."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._alone: float | None = None

    @property
    def alone(self) -> float:
        """Bandwidth satisfaction D on the cluster with nothing in use, by the first attitude; 0 without a plan."""
        if self._alone is None:
            empty = self.problem.on_empty_cluster()
            self._alone = 0.0 if hopeless(empty) else float(propose(empty, attitudes()[:1]).satisfaction[0])
        return self._alone


@dataclass(frozen=True, eq=False)
class Scenario:
    """A cluster and the jobs that come to it; the same for everyone who plays it. Times in seconds."""

    cluster: Cluster
    kinds: tuple[Kind, ...]
    arrivals: FloatArray
    durations: FloatArray
    spare: tuple[Kind, ...] = ()
    patience_s: float = MEAN_S

    @staticmethod
    def of(cluster: Cluster, jobs: Sequence[TimedJob], spare: Sequence[TimedJob] = ()) -> Scenario:
        jobs = sorted(jobs, key=lambda job: job.arrival_s)
        kinds = [Kind(Problem.make(cluster, job.tasks, job.flows, name=job.name)) for job in (*jobs, *spare)]
        return Scenario(
            cluster,
            tuple(kinds[: len(jobs)]),
            np.array([job.arrival_s for job in jobs]),
            np.array([job.duration_s for job in jobs]),
            tuple(kinds[len(jobs) :]),
        )

    @staticmethod
    def draw(regime: str, load: float, count: int, seed: int) -> Scenario:
        return Scenario.of(*offered(regime, load, count, seed))

    @property
    def gap_s(self) -> float:
        """Between two arrivals, on average."""
        return float(self.arrivals[-1] / len(self.arrivals))


class Stream:
    """One play of a scenario. ``job``: the index of the job to be decided now, None where all is over."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.kinds: Sequence[Kind] = scenario.kinds
        self.arrivals, self.durations = scenario.arrivals, scenario.durations
        self.now, self.arrived, self.releases = 0.0, 0, 0
        self.node_used, self.link_used = scenario.cluster.node_used, scenario.cluster.link_used
        self.held: dict[int, tuple[FloatArray, FloatArray]] = {}
        self.ends: list[tuple[float, int]] = []
        self.waiting: list[int] = []
        self.satisfaction: dict[int, float] = {}
        """Of every job that was started, in the order of the starts."""
        self.waited_s = 0.0
        self._refused: dict[int, int] = {}
        self._turn: list[int] = []
        self.job: int | None = None
        self._advance()

    @property
    def problem(self) -> Problem:
        """The job to be decided, on the cluster as it is."""
        assert self.job is not None
        problem = self.kinds[self.job].problem
        return replace(problem, cluster=self.cluster)

    @property
    def cluster(self) -> Cluster:
        return self.scenario.cluster.with_used(self.node_used, self.link_used)

    @property
    def may_wait(self) -> bool:
        """Whether something will become free; without that, who waits waits for nothing."""
        return bool(self.ends)

    def start(self, node_load: FloatArray, link_load: FloatArray, satisfaction: float) -> None:
        """Gives the job these amounts, (3, N) of nodes and (L,) of links, and goes on to the next decision."""
        job = self.job
        assert job is not None
        self.held[job] = node_load, link_load
        self.node_used, self.link_used = self.node_used + node_load, self.link_used + link_load
        self.satisfaction[job] = satisfaction
        self.waited_s += self.now - float(self.arrivals[job])
        heapq.heappush(self.ends, (self.now + float(self.durations[job]), job))
        self.waiting.remove(job)
        self._advance()

    def wait(self) -> None:
        """Leaves the job without a place until something has become free, and goes on to the next decision."""
        assert self.job is not None
        self._refused[self.job] = self.releases
        self._advance()

    @property
    def served(self) -> float:
        """Sum of the satisfactions of all that were started."""
        return math.fsum(self.satisfaction.values())

    @property
    def work_served(self) -> float:
        """The same with each job weighed by its work: CPU times duration, in units of ``UNIT_WORK``."""
        return math.fsum(
            satisfied * float(self.kinds[job].problem.demand[:, 0].sum()) * float(self.durations[job]) / UNIT_WORK
            for job, satisfied in self.satisfaction.items()
        )

    def _advance(self) -> None:
        while True:
            while self._turn:
                job = self._turn.pop()
                if self._refused.get(job) == self.releases:
                    continue
                self.job = job
                if not hopeless(self.problem):
                    return
                self._refused[job] = self.releases
            self.job = None
            if not self.ends:
                self.waiting = []  # all were refused although nothing runs
            self.waiting = [job for job in self.waiting if self._gives_up(job) > self.now]
            if not self._next():
                return

    def _gives_up(self, job: int) -> float:
        return float(self.arrivals[job]) + self.scenario.patience_s

    def _next(self) -> bool:
        """Goes to the next moment at which something happens; False where nobody comes or waits any more."""
        more = self.arrived < len(self.kinds)
        if not more and not self.waiting:
            return False
        times = [self._gives_up(job) for job in self.waiting[:1]] + [end for end, _ in self.ends[:1]]
        if more:
            times.append(float(self.arrivals[self.arrived]))
        self.now = min(times)
        freed = False
        while self.ends and self.ends[0][0] <= self.now:
            del self.held[heapq.heappop(self.ends)[1]]
            self.releases += 1
            freed = True
        if freed:
            self._sum_up()
        while self.arrived < len(self.kinds) and self.arrivals[self.arrived] <= self.now:
            self.waiting.append(self.arrived)
            self.arrived += 1
        self._turn = self.waiting[::-1]
        return True

    def _sum_up(self) -> None:
        """From what is held now: adding and subtracting would leave rounding errors behind."""
        cluster = self.scenario.cluster
        nodes, links = [cluster.node_used], [cluster.link_used]
        for node_load, link_load in self.held.values():
            nodes.append(node_load)
            links.append(link_load)
        self.node_used, self.link_used = np.sum(nodes, axis=0), np.sum(links, axis=0)

    # What may come.

    def copy(self) -> Stream:
        """Goes on by itself."""
        other = object.__new__(Stream)
        other.__dict__.update(self.__dict__)
        other.held, other.satisfaction, other._refused = dict(self.held), dict(self.satisfaction), dict(self._refused)
        other.ends, other.waiting, other._turn = list(self.ends), list(self.waiting), list(self._turn)
        return other

    def foreseen(self, jobs: int) -> Stream:
        """A copy to which the next ``jobs`` come as they will, and then nobody."""
        other = self.copy()
        other.kinds = self.kinds[: self.arrived + jobs]
        return other

    def imagined(self, jobs: int, rng: np.random.Generator) -> Stream:
        """A copy to which ``jobs`` come that are made up by what is known of such jobs: demands are those of spare
        jobs, gaps are exponential, and so is what is left of durations, which forget how long a job ran."""
        other, scenario = self.copy(), self.scenario
        chosen = rng.integers(len(scenario.spare), size=jobs)
        other.kinds = (*self.kinds[: self.arrived], *(scenario.spare[i] for i in chosen))
        gaps = np.cumsum(rng.exponential(scenario.gap_s, jobs))
        other.arrivals = np.concatenate([self.arrivals[: self.arrived], self.now + gaps])
        other.durations = rng.exponential(MEAN_S, len(other.kinds))
        other.ends = [(self.now + float(rng.exponential(MEAN_S)), job) for _, job in self.ends]
        heapq.heapify(other.ends)
        return other
