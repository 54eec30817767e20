"""Time, power and reliability of a plan: the equations, in ms, Mbit/s and W.

- Cores that help: ``e = min(cpu, threads)``. Service time: ``x = work / (speed e)``. Load: ``rho = rate x / 1000``, at
  most LOAD_LIMIT. Response time of a processor that shares itself among requests that arrive at random (M/G/1 processor
  sharing, L. Kleinrock, Queueing Systems, volume 2, 1976): ``tau = x / (1 - rho)``.
- A flow takes the sum of its path's delays plus ``message / rate``, and nothing within a node. A request takes its
  longest chain, and ``S_T`` is the mean over the requests with a deadline that is not hard of ``max(0, 1 -
  T/deadline)``; 1 where there are none.
- Power of a node: a straight line from idle to peak over the share of its CPU in use, or a curve. The change counts
  all nodes that get a task, a node that wakes with all that it then draws, and links by what they carry. ``S_E = 1 -
  (change - lo)/(hi - lo)``; 1 where hi = lo.
- Reliability: the product over the distinct nodes and links in use.
- Objective: ``J = a_B (1 - L) + a_D D + a_T S_T + a_E S_E``, less what it costs to move held tasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from ces_core.model.goals import Chain, Goals
from ces_core.model.path import Path
from ces_core.model.problem import BoolArray, FloatArray, Problem
from ces_core.model.profiles import CURVE_POINTS, ClusterProfile, LinkProfile, NodeProfile, TaskProfile

LOAD_LIMIT = 0.8
"""The most that a task may be loaded: above it queues grow long before the formula shows it."""
ROUNDING = 1e-10
"""Relative: how far sums of times may exceed a limit, and products of reliabilities fall below theirs."""
NOTHING_KNOWN = TaskProfile()


def service_ms(work: float, speed: float, cpu: float, threads: float | None) -> float:
    """What one request takes on an idle node. ``work``: ms of a reference core; ``cpu``: cores."""
    cores = cpu if threads is None else min(cpu, threads)
    return work / (speed * cores) if speed > 0 and cores > 0 else math.inf


def response_ms(service: float, load: float) -> float:
    """What one request takes among others; infinite from a load of 1 on."""
    return service / (1.0 - load) if load < 1.0 else math.inf


def flow_ms(delays: Sequence[float], message: float, rate_mbit: float) -> float:
    """``delays``: of the path's links, in ms; none: within a node. ``message``: bytes."""
    if not len(delays):
        return 0.0
    sending = message * 8e-3 / rate_mbit if rate_mbit > 0 else math.inf
    return float(sum(delays)) + (sending if message > 0 else 0.0)


def node_power_w(curve: Sequence[float] | FloatArray, use: float) -> float:
    """``curve``: watts at CURVE_POINTS equally spaced shares in use; ``use``: 0 to 1, what is beyond counts as 1."""
    return float(np.interp(use, np.linspace(0.0, 1.0, CURVE_POINTS), curve))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Step:
    """A part of a request's time. ``what``: ``task on node`` or ``node -> node``."""

    what: str
    ms: float


@dataclass(frozen=True)
class RequestTime:
    """How long a request takes by its longest chain, and where it spends that time."""

    name: str
    time_ms: float
    deadline_ms: float | None
    hard: bool
    steps: tuple[Step, ...]

    def to_dict(self) -> dict[str, Any]:
        """Without a time, as null, where it is infinite: JSON has no such number."""
        told = asdict(self) | {"steps": [{"what": step.what, "ms": _finite(step.ms)} for step in self.steps]}
        return told | {"time_ms": _finite(self.time_ms)}

    @property
    def missing_ms(self) -> float:
        """By how much the deadline is missed; 0 where it is met or there is none."""
        late = 0.0 if self.deadline_ms is None else self.time_ms - self.deadline_ms
        return late if self.deadline_ms is not None and late > ROUNDING * self.deadline_ms else 0.0

    @property
    def score(self) -> float:
        return 1.0 if self.deadline_ms is None else max(0.0, 1.0 - self.time_ms / self.deadline_ms)

    def text(self) -> str:
        """Such as ``loop: 61 ms of 50 ms, 22 ms of it roof1 -> gate1``."""
        limit = "" if self.deadline_ms is None else f" of {self.deadline_ms:.4g} ms"
        longest = max(self.steps, key=lambda step: step.ms)
        return f"{self.name}: {self.time_ms:.4g} ms{limit}, {longest.ms:.4g} ms of it {longest.what}"


@dataclass(frozen=True)
class ServiceMetrics:
    """Of a plan; the letters are those of the module."""

    time_score: float
    power_change_w: float
    energy_score: float
    reliability: float
    move_cost: float
    objective: float
    requests: tuple[RequestTime, ...] = ()

    def to_dict(self) -> dict[str, float]:
        """The numbers that stand beside those of every plan."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "requests"}


class Service:
    """The equations over one problem: T tasks, N nodes, F flows."""

    def __init__(self, problem: Problem) -> None:
        cluster, topology = problem.cluster, problem.cluster.topology
        nothing = ClusterProfile((NodeProfile(),) * len(topology.nodes), (LinkProfile(),) * len(topology.link_src))
        self.problem = problem
        self.profile = cluster.profile or nothing
        self.goals = problem.goals or Goals()
        self.tasks = [task.profile or NOTHING_KNOWN for task in problem.tasks]
        flow = {(each.src, each.dst): f for f, each in enumerate(problem.flows)}
        task = {each.name: t for t, each in enumerate(problem.tasks)}
        self.chain_tasks = [[task[name] for name in chain.tasks] for chain in self.goals.chains]
        self.chain_flows = [[flow[ends] for ends in chain.flows] for chain in self.goals.chains]
        self.message_ms: FloatArray = np.array(
            [each.message * 8e-3 * problem.units.mbit for each in problem.flows], dtype=np.float64
        )
        """(F,): what a flow's message takes at one unit of bandwidth, in ms."""

    @cached_property
    def service_ms(self) -> FloatArray:
        """(T, N); 0 for a task without work, infinite where it cannot run."""
        table = np.zeros((len(self.tasks), len(self.profile.nodes)))
        for t, task in enumerate(self.tasks):
            if task.work is not None:
                cores = float(self.problem.demand[t, 0]) / self.problem.units.core
                speeds = self.profile.speeds(task.work.work_class)
                kinds, of = np.unique(speeds, return_inverse=True)
                each = [service_ms(task.work.per_request, kind, cores, task.work.threads) for kind in kinds.tolist()]
                table[t] = np.array(each)[of]
        return table

    @cached_property
    def load(self) -> FloatArray:
        """(T, N)."""
        rates = np.array([[task.rate] for task in self.tasks])
        return np.where(rates > 0, rates * np.where(rates > 0, self.service_ms, 0.0) / 1000.0, 0.0)

    @cached_property
    def response_ms(self) -> FloatArray:
        """(T, N)."""
        left = 1.0 - self.load
        return np.where(left > 0, self.service_ms / np.where(left > 0, left, 1.0), math.inf)

    @cached_property
    def in_time(self) -> BoolArray:
        """(T, N): whether the task keeps its own limits on load and time on the node."""
        longest = np.array([[math.inf if task.longest_ms is None else task.longest_ms] for task in self.tasks])
        return (self.load <= LOAD_LIMIT * (1 + ROUNDING)) & (self.response_ms <= longest * (1 + ROUNDING))

    @cached_property
    def use_before(self) -> FloatArray:
        """(N,): share of the CPU in use."""
        capacity = self.problem.cluster.node_capacity[0]
        return np.where(capacity > 0, self.problem.cluster.node_used[0] / np.where(capacity > 0, capacity, 1.0), 0.0)

    @cached_property
    def link_w(self) -> FloatArray:
        """(links,): watts for a unit of bandwidth."""
        return self.profile.nj_per_bit * 1e-3 / self.problem.units.mbit

    def power_w(self, node: int, cpu: float) -> float:
        """What a node draws with ``cpu`` more in use."""
        capacity = float(self.problem.cluster.node_capacity[0, node])
        more = cpu / capacity if capacity > 0 else 0.0
        return node_power_w(self.profile.power_w[node], float(self.use_before[node]) + more)

    @cached_property
    def power_alone_w(self) -> FloatArray:
        """(T, N): change of a node's power by the task alone, its waking apart."""
        capacity = self.problem.cluster.node_capacity[0]
        more = self.problem.demand[:, 0, None] * np.divide(
            1.0, capacity, out=np.zeros_like(capacity), where=capacity > 0
        )
        return self._power_w(self.use_before + more) - self.idle_w

    @cached_property
    def idle_w(self) -> FloatArray:
        """(N,): what each node draws with its CPU in use as now."""
        power: FloatArray = self._power_w(self.use_before[None, :])[0]
        return power

    def _power_w(self, use: FloatArray) -> FloatArray:
        """(rows, N): power of each node at the shares ``use`` (rows, N) of its CPU."""
        at = np.clip(use, 0.0, 1.0) * (CURVE_POINTS - 1)
        k = np.minimum(at.astype(np.int64), CURVE_POINTS - 2)
        nodes = np.arange(use.shape[1])
        low, high = self.profile.power_w[nodes, k], self.profile.power_w[nodes, k + 1]
        power: FloatArray = low + (high - low) * (at - k)
        return power

    @cached_property
    def power_range_w(self) -> tuple[float, float]:
        """``lo`` and ``hi`` of S_E: each task alone on the allowed node where it adds least, and on that where it adds
        most, a sleeping node's idle power included; for ``hi`` also every flow at its maximum over the dearest link."""
        allowed = self.problem.allowed
        if not allowed.any(axis=1).all():
            return 0.0, 0.0
        idle = np.where(self.profile.sleeping, self.idle_w, 0.0)
        low = float(np.where(allowed, self.power_alone_w, math.inf).min(axis=1).sum())
        high = float(np.where(allowed, self.power_alone_w + idle, -math.inf).max(axis=1).sum())
        return low, high + float(self.problem.flow_max.sum()) * float(self.link_w.max(initial=0.0))

    def energy_score(self, change: float) -> float:
        low, high = self.power_range_w
        return 1.0 if high <= low else 1.0 - (change - low) / (high - low)

    def power_change_w(self, assignment: Sequence[int], paths: Sequence[Path], bandwidth: Sequence[float]) -> float:
        more: dict[int, float] = {}
        for t, n in enumerate(assignment):
            more[n] = more.get(n, 0.0) + float(self.problem.demand[t, 0])
        change = 0.0
        for n, cpu in more.items():
            change += self.power_w(n, cpu) - (0.0 if self.profile.sleeping[n] else self.power_w(n, 0.0))
        for path, rate in zip(paths, bandwidth, strict=True):
            change += float(self.link_w[list(path.links)].sum()) * rate
        return change

    def reliability(self, assignment: Sequence[int], paths: Sequence[Path]) -> float:
        nodes = {*assignment, *(n for path in paths for n in path.nodes)}
        links = {i for path in paths for i in path.links}
        product = math.prod(float(self.profile.node_reliability[n]) for n in nodes)
        return product * math.prod(float(self.profile.link_reliability[i]) for i in links)

    def flow_ms(self, flow: int, path: Path, rate: float) -> float:
        delays = self.profile.delay_ms[list(path.links)].tolist()
        return flow_ms(delays, self.problem.flows[flow].message, rate / self.problem.units.mbit)

    def requests(
        self, assignment: Sequence[int], paths: Sequence[Path], bandwidth: Sequence[float]
    ) -> tuple[RequestTime, ...]:
        """The time of every request class, by its longest chain, in the order of the goals."""
        longest: dict[str, RequestTime] = {}
        for c, chain in enumerate(self.goals.chains):
            steps = self._steps(c, chain, assignment, paths, bandwidth)
            total = sum(step.ms for step in steps)
            if chain.name not in longest or total > longest[chain.name].time_ms:
                longest[chain.name] = RequestTime(chain.name, total, chain.deadline_ms, chain.hard, steps)
        return tuple(longest.values())

    def _steps(
        self, c: int, chain: Chain, assignment: Sequence[int], paths: Sequence[Path], bandwidth: Sequence[float]
    ) -> tuple[Step, ...]:
        names = self.problem.cluster.topology.nodes
        steps = [Step("access", chain.fixed_ms)] if chain.fixed_ms else []
        for t in self.chain_tasks[c]:
            n = assignment[t]
            steps.append(Step(f"{self.problem.tasks[t].name} on {names[n]}", float(self.response_ms[t, n])))
        for f in self.chain_flows[c]:
            ends = f"{names[paths[f].nodes[0]]} -> {names[paths[f].nodes[-1]]}"
            steps.append(Step(ends, self.flow_ms(f, paths[f], bandwidth[f])))
        return tuple(steps)

    def move_cost(self, assignment: Sequence[int]) -> float:
        nodes = self.problem.cluster.topology.nodes
        placed = {task.name: nodes[n] for task, n in zip(self.problem.tasks, assignment, strict=True)}
        return sum(held.cost or 0.0 for held in self.goals.held if placed[held.task] != held.node)

    def metrics(
        self,
        imbalance: float,
        satisfaction: float,
        assignment: Sequence[int],
        paths: Sequence[Path],
        bandwidth: Sequence[float],
    ) -> ServiceMetrics:
        """``imbalance`` and ``satisfaction``: L and D of the same plan. Checks no limit."""
        requests = self.requests(assignment, paths, bandwidth)
        scores = [each.score for each in requests if each.deadline_ms is not None and not each.hard]
        time_score = sum(scores) / len(scores) if scores else 1.0
        change = self.power_change_w(assignment, paths, bandwidth)
        energy, cost, weights = self.energy_score(change), self.move_cost(assignment), self.goals.weights
        value = weights.balance * (1.0 - imbalance) + weights.bandwidth * satisfaction
        value += weights.time * time_score + weights.energy * energy - cost
        return ServiceMetrics(time_score, change, energy, self.reliability(assignment, paths), cost, value, requests)
