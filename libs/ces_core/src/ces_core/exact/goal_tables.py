"""Upper bounds on what a job with goals can reach, from tables over tasks, nodes, and pairs of nodes.

A standard deviation is the largest of the linear functions ``g . U`` whose ``g`` sums to zero and has norm at most
1/sqrt(N). One such ``g``, taken where a known plan is, makes the bound on balance a sum over tasks and flows, as the
rest of the objective is already: power by its smallest slope, satisfaction and the energy of links by the better end of
the range of rates, time by the best node and the least delay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ces_core.model.goals import Goals
from ces_core.model.path import Path
from ces_core.model.problem import SLACK, BoolArray, FloatArray, Problem
from ces_core.model.profiles import CURVE_POINTS
from ces_core.model.service import Service
from ces_core.network.path_table import PathTable


@dataclass(frozen=True)
class Aim:
    """What a tree maximises, and which goals bind it. ``slowest``: a request class whose time is to be the least;
    ``reliability``: whether the reliability is to be the greatest; without either, the weighted objective."""

    balance: float = 0.0
    bandwidth: float = 0.0
    time: float = 0.0
    energy: float = 0.0
    moves: float = 0.0
    slowest: str | None = None
    reliability: bool = False
    deadlines: frozenset[str] = frozenset()
    least_reliability: float = 0.0

    @staticmethod
    def of(goals: Goals) -> Aim:
        """The objective, with every goal binding."""
        weights = goals.weights
        hard = frozenset(chain.name for chain in goals.chains if chain.hard)
        shares = weights.balance, weights.bandwidth, weights.time, weights.energy
        return Aim(*shares, 1.0, deadlines=hard, least_reliability=goals.least_reliability)


@dataclass(frozen=True, eq=False)
class Reference:
    """The ``g`` of CPU and memory, (2, nodes), and that of links; zeros bound nothing, and are valid."""

    nodes: FloatArray
    links: FloatArray

    @staticmethod
    def none(problem: Problem) -> Reference:
        cluster = problem.cluster
        return Reference(np.zeros((2, cluster.node_capacity.shape[1])), np.zeros(len(cluster.link_used)))

    @staticmethod
    def at(problem: Problem, assignment: Sequence[int], paths: Sequence[Path], bandwidth: Sequence[float]) -> Reference:
        """Where the bound is tight for this plan."""
        cluster = problem.cluster
        system = problem.basis == "system"
        load = cluster.node_used[:2] * system
        for t, n in enumerate(assignment):
            load[:, n] += problem.demand[t, :2]
        links = cluster.link_used * system
        for path, rate in zip(paths, bandwidth, strict=True):
            links[list(path.links)] += rate
        rows = [_support(load[r], cluster.node_capacity[r]) for r in range(2)]
        return Reference(np.array(rows), _support(links, cluster.link_capacity))


def _support(load: FloatArray, capacity: FloatArray) -> FloatArray:
    """The g that attains std(load / capacity), over what has a capacity."""
    there = capacity > 0
    count = max(1, int(there.sum()))
    use = np.where(there, load / np.where(there, capacity, 1.0), 0.0)
    for _ in range(2):  # rounding is all that is left of the first difference where all are equal
        use = np.where(there, use - use.sum() / count, 0.0)
    spread = float(np.sqrt((use**2).sum() / count))
    support: FloatArray = use / (count * spread) if spread > 0 else np.zeros_like(use)
    return support


@dataclass(frozen=True)
class Option:
    """A path for a flow: the most that it adds to the objective, the least ms, and its links' reliability."""

    path: Path
    value: float
    least_ms: float
    reliability: float


@dataclass(eq=False)
class Tables:
    """T tasks, N nodes, F flows. ``flow_value``, ``flow_ms`` and ``flow_reliability``: (F, N, N), the best of any path
    between two nodes, impossible where none has room for the minimum; an end that is a node itself is that node."""

    service: Service
    aim: Aim
    reference: Reference
    routes: PathTable
    domain: BoolArray
    constant: float = 0.0
    node_value: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # (T, N)
    wake_value: FloatArray = field(default_factory=lambda: np.zeros(0))  # (N,) never positive
    flow_value: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    flow_ms: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    flow_reliability: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))

    def __post_init__(self) -> None:
        problem, aim = self.service.problem, self.aim
        low, high = self.service.power_range_w
        self.per_watt = aim.energy / (high - low) if high > low else 0.0
        self.residual: FloatArray = problem.cluster.bandwidth_free + SLACK * problem.cluster.bandwidth_capacity
        self.span = problem.flow_max - problem.flow_min
        self._options: dict[tuple[int, int, int], list[Option]] = {}
        self._nodes()
        self._flows()
        links = self.reference.links * self._link_inverse()
        used = problem.cluster.link_used * (problem.basis == "system")
        self.links_constant = problem.weights[2] * float(links @ used)
        self.constant -= aim.balance * self.links_constant

    def _link_inverse(self) -> FloatArray:
        capacity = self.service.problem.cluster.link_capacity
        return np.divide(1.0, capacity, out=np.zeros_like(capacity), where=capacity > 0)

    def _nodes(self) -> None:
        problem, aim, service = self.service.problem, self.aim, self.service
        cluster = problem.cluster
        self.constant = aim.balance + aim.energy + self.per_watt * service.power_range_w[0]
        if not problem.flows:
            self.constant += aim.bandwidth
        self.node_value = -self.per_watt * self._least_power_w()
        for r in range(2):
            capacity = cluster.node_capacity[r]
            slope = self.reference.nodes[r] * np.divide(1.0, capacity, out=np.zeros_like(capacity), where=capacity > 0)
            slope *= aim.balance * problem.weights[r]
            self.node_value -= problem.demand[:, r, None] * slope[None, :]
            self.constant -= float(slope @ cluster.node_used[r]) * (problem.basis == "system")
        task = {each.name: t for t, each in enumerate(problem.tasks)}
        for held in service.goals.held:
            away = np.ones(self.node_value.shape[1])
            away[cluster.topology.node_index[held.node]] = 0.0
            self.node_value[task[held.task]] -= aim.moves * (held.cost or 0.0) * away
        idle = np.array([service.power_w(n, 0.0) for n in range(self.node_value.shape[1])])
        self.wake_value = -self.per_watt * np.where(service.profile.sleeping, idle, 0.0)

    def _least_power_w(self) -> FloatArray:
        """(T, N): the least that a task can add to a node's power, whatever else is placed there."""
        problem = self.service.problem
        capacity = problem.cluster.node_capacity[0]
        slope = (np.diff(self.service.profile.power_w, axis=1) * (CURVE_POINTS - 1)).min(axis=1)
        per_cpu = np.divide(slope, capacity, out=np.zeros_like(slope), where=capacity > 0)
        least: FloatArray = problem.demand[:, 0, None] * per_cpu[None, :]
        return least

    def _flows(self) -> None:
        problem = self.service.problem
        count = self.domain.shape[1]
        shape = (len(problem.flows), count, count)
        self.flow_value, self.flow_ms = np.full(shape, -np.inf), np.full(shape, np.inf)
        self.flow_reliability = np.zeros(shape)
        for f in range(len(problem.flows)):
            for a in self.ends(int(problem.flow_src[f])):
                for b in self.ends(int(problem.flow_dst[f])):
                    options = self.options(f, a, b)
                    if options:
                        self.flow_value[f, a, b] = options[0].value
                        self.flow_ms[f, a, b] = min(option.least_ms for option in options)
                        self.flow_reliability[f, a, b] = max(option.reliability for option in options)

    def ends(self, end: int) -> list[int]:
        """The nodes that an end of a flow can be on."""
        return [-1 - end] if end < 0 else np.flatnonzero(self.domain[end]).tolist()

    def options(self, flow: int, a: int, b: int) -> list[Option]:
        """The paths that the flow may take between two nodes, the most valuable first; from any of its sources."""
        found = self._options.get((flow, a, b))
        if found is None:
            asked = self.service.problem.flows[flow]
            index = self.service.problem.cluster.topology.node_index
            sources = [a] if asked.sources is None else [index[name] for name in asked.sources]
            every = [self._option(flow, path) for source in sources for path in self.routes.between(source, b)]
            found = sorted((option for option in every if option is not None), key=lambda option: -option.value)
            self._options[flow, a, b] = found
        return found

    def _option(self, flow: int, path: Path) -> Option | None:
        problem, service, aim = self.service.problem, self.service, self.aim
        low, high = float(problem.flow_min[flow]), float(problem.flow_max[flow])
        width = min((float(self.residual[r]) / times for r, times in path.loads), default=math.inf)
        if low > width:
            return None
        share = aim.bandwidth / len(problem.flows)
        widest = min(high, width)
        if not path.links:
            return Option(path, share, 0.0, 1.0)
        links = list(path.links)
        slope = -self.per_watt * float(service.link_w[links].sum())
        pull = (self.reference.links * self._link_inverse())[links].sum()
        slope -= aim.balance * problem.weights[2] * float(pull)
        span = float(self.span[flow])
        fixed = share if span == 0 else 0.0
        values = [fixed + slope * rate + (share * (rate - low) / span if span > 0 else 0.0) for rate in (low, widest)]
        least = service.flow_ms(flow, path, widest)
        return Option(path, max(values), least, math.prod(service.profile.link_reliability[links].tolist()))
