"""Jobs that arrive, wait, run and leave, on one cluster, by one solver and one policy.

Events of one moment come in a fixed order: ends, arrivals, then the policy, then those whose patience is over.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ces_core.model.objective import composite, load_imbalance
from ces_core.model.plan import Plan, Result
from ces_core.model.problem import EQUAL_WEIGHTS, Cluster, FloatArray, Problem
from ces_core.model.reason import Reason
from ces_core.queue.feasibility import UNSEARCHED, apart
from ces_core.queue.jobs import RunningJob, WaitingJob
from ces_core.queue.ledger import Ledger
from ces_core.queue.state import Memory
from ces_core.solver import Solver, with_lookahead
from ces_sim.arrivals import TimedJob
from ces_sim.decision import decide
from ces_sim.outcome import Fate, Moment, Outcome
from ces_sim.queue_policy import FirstComeFirstServed, Policy


def simulate(
    cluster: Cluster,
    jobs: Sequence[TimedJob],
    solver: Solver,
    policy: Policy | None = None,
    *,
    patience_s: float | None = None,
    seed: int = 0,
    time_limit_s: float | None = None,
    weights: Sequence[float] = EQUAL_WEIGHTS,
    screen: bool = False,
) -> Outcome:
    """Run until every job has ended or left.

    A job leaves when it has waited ``patience_s`` (None: as long as it takes), and at once where it is proven to fit on
    no empty cluster, or has no place although nothing else runs. ``seed`` and ``time_limit_s`` are the solver's.
    ``screen``: it is not asked where the tasks do not fit on the nodes together, which it would only take long to see.
    Names of jobs are unique. Raises ProblemError for jobs that make no sense on this cluster, BadDecisionError where
    the solver fails or breaks a rule, OverCapacityError where the policy overbooks.
    """
    jobs = sorted(jobs, key=lambda job: job.arrival_s)
    problems = {job.name: Problem.make(cluster, job.tasks, job.flows, name=job.name, weights=weights) for job in jobs}
    answers = _Answers(solver, problems, seed, time_limit_s, screen)
    return _Simulation(cluster, jobs, answers, policy or FirstComeFirstServed(), patience_s).run()


class _Answers:
    """What the solver says, asked again only where the answer may have changed."""

    def __init__(
        self, solver: Solver, problems: dict[str, Problem], seed: int, time_limit_s: float | None, screen: bool
    ) -> None:
        self.solver, self.problems = solver, problems
        self._fragmentation_aware = with_lookahead(solver)
        self.changes = self.releases = 0
        self.wall_s: list[float] = []
        self._seed, self._time_limit_s, self._screen = seed, time_limit_s, screen
        self._known: dict[str, tuple[int, int, Result]] = {}

    def last(self, job: str) -> Result | None:
        known = self._known.get(job)
        return None if known is None else known[2]

    def stands(self, job: str) -> bool:
        """Whether the last answer still holds: nothing has changed, or it was a refusal and nothing became free."""
        if job not in self._known:
            return False
        changes, releases, result = self._known[job]
        return changes == self.changes or (result.plan is None and releases == self.releases)

    def ask(self, job: str, cluster: Cluster) -> Result:
        """On the cluster as it stands."""
        result = self._screened(job, cluster) or self.answer(job, cluster)
        self.know(job, result)
        return result

    def _screened(self, job: str, cluster: Cluster) -> Result | None:
        problem = replace(self.problems[job], cluster=cluster)
        if not self._screen or not problem.homes.any(axis=1).all():  # of a single task the solver says more, as soon
            return None
        reason = apart(problem)
        return None if reason is None else Result(self.solver.name, UNSEARCHED, reason=reason)

    def answer(self, job: str, cluster: Cluster, *, fragmentation_aware: bool = False) -> Result:
        """On any cluster. ``fragmentation_aware``: counting what is left for later jobs, if the solver can."""
        problem = replace(self.problems[job], cluster=cluster)
        solver = self._fragmentation_aware if fragmentation_aware else self.solver
        decision = decide(solver, problem, seed=self._seed, time_limit_s=self._time_limit_s)
        self.wall_s.append(decision.wall_s)
        return decision.result

    def know(self, job: str, result: Result) -> None:
        self._known[job] = self.changes, self.releases, result


class _Simulation:
    """The desk that the policy works at, and the clock behind it."""

    def __init__(
        self, cluster: Cluster, jobs: Sequence[TimedJob], answers: _Answers, policy: Policy, patience_s: float | None
    ) -> None:
        self.now = 0.0
        self._ledger = Ledger(cluster)
        self._answers, self._policy, self._patience_s = answers, policy, patience_s
        self._fates = {job.name: Fate(job) for job in jobs}
        self._coming = list(reversed(jobs))
        self._waiting: dict[str, TimedJob] = {}
        self._ends: list[tuple[float, str]] = []
        self._satisfaction: dict[str, float] = {}  # of those that run
        self._queued = {job.name: _queued(job, answers.problems[job.name]) for job in jobs}
        self._running: dict[str, RunningJob] = {}
        self._attained: dict[str, float] = {}
        self.memory = Memory()
        self._moments: list[Moment] = []

    # What the policy sees.

    @property
    def waiting(self) -> tuple[TimedJob, ...]:
        return tuple(self._waiting.values())

    @property
    def cluster(self) -> Cluster:
        return self._ledger.cluster

    @property
    def ledger(self) -> Ledger:
        return self._ledger

    @property
    def queue(self) -> list[WaitingJob]:
        return [self._queued[name] for name in self._waiting]

    @property
    def running(self) -> list[RunningJob]:
        return list(self._running.values())

    @property
    def freed(self) -> int:
        return self._answers.releases

    @property
    def attained(self) -> Mapping[str, float]:
        found = dict(self._attained)
        for name, run in self._running.items():
            so_far = (self.now - run.started_s) * len(self._fates[name].job.tasks)
            found[run.tenant] = found.get(run.tenant, 0.0) + so_far
        return found

    def solve(self, job: WaitingJob, cluster: Cluster) -> Result:
        return self._answers.answer(job.name, cluster)

    def solve_fragmentation_aware(self, job: WaitingJob, cluster: Cluster) -> Result:
        return self._answers.answer(job.name, cluster, fragmentation_aware=True)

    def refuse(self, name: str, reason: Reason) -> None:
        self._fates[name].refusals.append(reason.code)
        self._answers.know(name, Result(self._answers.solver.name, UNSEARCHED, reason=reason))

    def decide(self, job: TimedJob) -> Result:
        last = self._answers.last(job.name)
        if last is not None and self._answers.stands(job.name):
            return last
        result = self._answers.ask(job.name, self.cluster)
        if result.reason is not None:
            self._fates[job.name].refusals.append(result.reason.code)
        return result

    def start(self, job: TimedJob, plan: Plan) -> None:
        problem = self._answers.problems[job.name]
        self._ledger.hold(job.name, problem, plan)
        del self._waiting[job.name]
        self._answers.changes += 1
        fate = self._fates[job.name]
        fate.started_s, fate.plan = self.now, plan
        fate.bandwidth_satisfaction = self._satisfaction[job.name] = _satisfaction(problem, plan)
        fate.load_imbalance = self._imbalance(problem)
        self._running[job.name] = RunningJob(
            job.name, self.now, job.tenant, job.expected_s, job.priority, preemption="stop"
        )
        heapq.heappush(self._ends, (self.now + job.duration_s, job.name))

    def stop(self, name: str) -> None:
        fate = self._fates[name]
        self._attain(fate.job, self.now - self._running[name].started_s)
        self._release(name)
        self._ends = [each for each in self._ends if each[1] != name]
        heapq.heapify(self._ends)
        fate.started_s = fate.plan = fate.bandwidth_satisfaction = fate.load_imbalance = None
        fate.stopped += 1
        waiting = [*self._waiting.values(), fate.job]
        self._waiting = {job.name: job for job in sorted(waiting, key=lambda job: job.arrival_s)}

    # The clock.

    def run(self) -> Outcome:
        while self._coming or self._ends or self._waiting:
            self.now = self._next()
            while self._ends and self._ends[0][0] <= self.now:
                self._end(heapq.heappop(self._ends)[1])
            while self._coming and self._coming[-1].arrival_s <= self.now:
                job = self._coming.pop()
                self._waiting[job.name] = job
            self._policy.serve(self)
            while self._dismiss_hopeless():
                self._policy.serve(self)
            for job in self.waiting:
                if self._gives_up(job) <= self.now:
                    self._leave(job)
            self._look()
        return Outcome(
            solver=self._answers.solver.name,
            policy=self._policy.name,
            fates=list(self._fates.values()),
            moments=self._moments,
            decision_wall_s=self._answers.wall_s,
            cluster=self.cluster,
        )

    def _next(self) -> float:
        times = [self._gives_up(job) for job in list(self._waiting.values())[:1]]
        times += [job.arrival_s for job in self._coming[-1:]] + [time for time, _ in self._ends[:1]]
        time = min(times)
        if math.isinf(time):
            raise RuntimeError(f"policy {self._policy.name} lets jobs wait although nothing runs")
        return time

    def _gives_up(self, job: TimedJob) -> float:
        return math.inf if self._patience_s is None else job.arrival_s + self._patience_s

    def _dismiss_hopeless(self) -> bool:
        """Whether a job had to leave because it will never have a place: where nothing runs, nothing becomes free."""
        found = [job for job in self.waiting if _never(self._answers.last(job.name))]
        if not found and not self._ends:
            found = [job for job in self.waiting[:1] if self.decide(job).plan is None]
        for job in found:
            self._leave(job)
        return bool(found)

    def _leave(self, job: TimedJob) -> None:
        del self._waiting[job.name]
        self._fates[job.name].left_s = self.now

    def _end(self, name: str) -> None:
        self._release(name)
        fate = self._fates[name]
        fate.ended_s = self.now
        self._attain(fate.job, fate.job.duration_s)

    def _release(self, name: str) -> None:
        self._ledger.release(name)
        self._answers.changes += 1
        self._answers.releases += 1
        del self._satisfaction[name], self._running[name]

    def _attain(self, job: TimedJob, ran_s: float) -> None:
        self._attained[job.tenant] = self._attained.get(job.tenant, 0.0) + ran_s * len(job.tasks)

    # What is recorded.

    def _imbalance(self, problem: Problem) -> float:
        """Of the cluster as it stands, by the problem's weights."""
        return load_imbalance(replace(problem, cluster=self.cluster), (), (), ())

    def _look(self) -> None:
        cluster, running = self.cluster, self._satisfaction
        imbalance = self._imbalance(next(iter(self._answers.problems.values())))
        satisfied = math.fsum(running.values()) / len(running) if running else None
        self._moments.append(
            Moment(
                time_s=self.now,
                running=len(running),
                waiting=len(self._waiting),
                cpu=_share(cluster.node_used[0], cluster.node_capacity[0]),
                memory=_share(cluster.node_used[1], cluster.node_capacity[1]),
                bandwidth=_share(cluster.link_used, cluster.link_capacity),
                load_imbalance=imbalance,
                bandwidth_satisfaction=satisfied,
                composite=None if satisfied is None else composite(imbalance, satisfied),
            )
        )


def _queued(job: TimedJob, problem: Problem) -> WaitingJob:
    return WaitingJob(job.name, problem, job.arrival_s, job.priority, job.tenant, job.expected_s)


def _never(result: Result | None) -> bool:
    return result is not None and result.reason is not None and result.reason.permanent and result.reason.proven


def _satisfaction(problem: Problem, plan: Plan) -> float:
    shares = [
        1.0
        if len(given.path) == 1 or asked.max == asked.min
        else (given.bandwidth - asked.min) / (asked.max - asked.min)
        for asked, given in zip(problem.flows, plan.flows, strict=True)
    ]
    return math.fsum(shares) / len(shares) if shares else 1.0


def _share(used: FloatArray, capacity: FloatArray) -> float:
    total = float(capacity.sum())
    return float(used.sum()) / total if total else 0.0
