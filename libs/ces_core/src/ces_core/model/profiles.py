"""What is known of nodes, links and tasks beyond their amounts: speed, power, reliability, delay, and work.

Whatever is left out has a default that changes nothing. :mod:`ces_core.model.service` has the equations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ces_core.model.bounds import amount, positive, probability
from ces_core.model.errors import ProblemError

CURVE_POINTS = 11
"""Points of a power curve: at 0 %, 10 %, ... 100 % of CPU in use, as SPECpower reports them."""
MAX_CLASSES = 64
"""Classes of work that a node can have speeds for."""
MAX_NAME = 256
"""Characters of the name of a class or a group."""


@dataclass(frozen=True)
class Position:
    """In degrees, WGS 84."""

    lat: float
    lon: float


@dataclass(frozen=True)
class NodeProfile:
    """What is known of a node.

    ``speed``: class of work -> times the reference core; None: 1 for every class. A class that is missing cannot run
    there, so that nobody guesses a speed. ``idle_w`` and ``peak_w``: watts at no and at full use of the CPU, with a
    straight line between them; or ``power_w``: a curve of CURVE_POINTS. ``sleeping``: draws nothing until a task wakes
    it. ``reliability``: the probability that it works. ``position`` and ``coverage_m``: where it is, and how far its
    radio reaches; they are for resolving users to nodes, and no solver looks at them.
    """

    speed: Mapping[str, float] | None = None
    idle_w: float = 0.0
    peak_w: float = 0.0
    power_w: tuple[float, ...] | None = None
    sleeping: bool = False
    reliability: float = 1.0
    position: Position | None = None
    coverage_m: float | None = None

    def speed_of(self, work_class: str | None) -> float:
        """Times the reference core; 0 where this class cannot run."""
        return 1.0 if self.speed is None or work_class is None else float(self.speed.get(work_class, 0.0))

    @property
    def curve(self) -> tuple[float, ...]:
        """Watts at CURVE_POINTS equally spaced shares of the CPU in use."""
        if self.power_w is not None:
            return self.power_w
        steps = CURVE_POINTS - 1
        return tuple(self.idle_w + (self.peak_w - self.idle_w) * i / steps for i in range(CURVE_POINTS))


@dataclass(frozen=True)
class LinkProfile:
    """``delay_ms``: one way. ``nj_per_bit``: energy that a bit costs on this link. ``reliability``: the probability
    that it works."""

    delay_ms: float = 0.0
    nj_per_bit: float = 0.0
    reliability: float = 1.0


@dataclass(frozen=True)
class Work:
    """What a request costs a task: ``per_request`` in ms of the reference core. ``work_class``: which of a node's
    speeds counts; None: 1 everywhere. ``threads``: cores beyond this number do not help; None: all of them do."""

    per_request: float
    work_class: str | None = None
    threads: float | None = None


@dataclass(frozen=True)
class TaskProfile:
    """What is known of a task. ``rate``: requests a second. ``longest_ms``: its limit for one request. ``group``: all
    tasks of a group share a node. ``state``: bytes that a move has to carry over; no solver looks at it."""

    work: Work | None = None
    rate: float = 0.0
    longest_ms: float | None = None
    group: str | None = None
    state: float = 0.0


@dataclass(frozen=True, eq=False)
class ClusterProfile:
    """The profiles of all nodes and links, in the cluster's order, and the same as arrays."""

    nodes: tuple[NodeProfile, ...]
    links: tuple[LinkProfile, ...]

    def speeds(self, work_class: str | None) -> NDArray[np.float64]:
        """(nodes,): times the reference core; 0 where this class cannot run."""
        return np.array([node.speed_of(work_class) for node in self.nodes])

    @cached_property
    def power_w(self) -> NDArray[np.float64]:
        """(nodes, CURVE_POINTS)."""
        return np.array([node.curve for node in self.nodes]).reshape(len(self.nodes), CURVE_POINTS)

    @cached_property
    def sleeping(self) -> NDArray[np.bool_]:
        return np.array([node.sleeping for node in self.nodes], dtype=np.bool_)

    @cached_property
    def node_reliability(self) -> NDArray[np.float64]:
        return np.array([node.reliability for node in self.nodes])

    @cached_property
    def delay_ms(self) -> NDArray[np.float64]:
        """(links,)."""
        return np.array([link.delay_ms for link in self.links], dtype=np.float64)

    @cached_property
    def nj_per_bit(self) -> NDArray[np.float64]:
        """(links,)."""
        return np.array([link.nj_per_bit for link in self.links], dtype=np.float64)

    @cached_property
    def link_reliability(self) -> NDArray[np.float64]:
        return np.array([link.reliability for link in self.links], dtype=np.float64)


def cluster_profile(nodes: Sequence[NodeProfile | None], links: Sequence[LinkProfile | None]) -> ClusterProfile | None:
    """The profile of a cluster; None where nothing is known of any part. Raises ProblemError, naming the field."""
    if not any(nodes) and not any(links):
        return None
    for i, node in enumerate(nodes):
        if node is not None:
            _check_node(f"nodes[{i}]", node)
    for i, link in enumerate(links):
        if link is not None:
            amount(f"links[{i}].delay_ms", link.delay_ms)
            amount(f"links[{i}].nj_per_bit", link.nj_per_bit)
            probability(f"links[{i}].reliability", link.reliability)
    return ClusterProfile(
        tuple(node or NodeProfile() for node in nodes), tuple(link or LinkProfile() for link in links)
    )


def _check_node(where: str, node: NodeProfile) -> None:
    if node.speed is not None:
        if len(node.speed) > MAX_CLASSES:
            raise ProblemError(f"{where}.speed", f"at most {MAX_CLASSES} classes, not {len(node.speed)}")
        for name, speed in node.speed.items():
            _check_name(f"{where}.speed", name)
            positive(f"{where}.speed.{name}", speed)
    idle, peak = amount(f"{where}.idle_w", node.idle_w), amount(f"{where}.peak_w", node.peak_w)
    if peak < idle:
        raise ProblemError(f"{where}.peak_w", f"must not be below idle_w, which is {idle:g}")
    if node.power_w is not None:
        if idle or peak:
            raise ProblemError(f"{where}.power_w", "leave out idle_w and peak_w where there is a curve")
        if len(node.power_w) != CURVE_POINTS:
            raise ProblemError(f"{where}.power_w", f"a curve has {CURVE_POINTS} points, not {len(node.power_w)}")
        for i, watts in enumerate(node.power_w):
            amount(f"{where}.power_w[{i}]", watts)
    probability(f"{where}.reliability", node.reliability)
    if node.position is not None:
        for side, value, most in (("lat", node.position.lat, 90), ("lon", node.position.lon, 180)):
            if not -most <= value <= most:
                raise ProblemError(f"{where}.position.{side}", f"must be within {-most}..{most}, is {value}")
    if node.coverage_m is not None:
        amount(f"{where}.coverage_m", node.coverage_m)


def check_task(where: str, task: TaskProfile, cpu: float) -> None:
    """Raises ProblemError, naming the field, for a profile that no task can have."""
    amount(f"{where}.rate", task.rate)
    amount(f"{where}.state", task.state)
    if task.longest_ms is not None:
        positive(f"{where}.longest_ms", task.longest_ms)
    if task.group is not None:
        _check_name(f"{where}.group", task.group)
    if task.work is None:
        if task.rate or task.longest_ms is not None:
            field = "rate" if task.rate else "longest_ms"
            raise ProblemError(f"{where}.{field}", "says nothing without `work`: add what a request costs")
        return
    positive(f"{where}.work.per_request", task.work.per_request)
    if task.work.work_class is not None:
        _check_name(f"{where}.work.class", task.work.work_class)
    if task.work.threads is not None:
        positive(f"{where}.work.threads", task.work.threads)
    if not cpu > 0:
        raise ProblemError(f"{where}.cpu", "must be above 0 for a task with `work`, which would never end")


def _check_name(field: str, name: str) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise ProblemError(field, f"must be a name of at most {MAX_NAME} characters, not {name!r:.80}")
