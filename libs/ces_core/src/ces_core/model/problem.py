"""The problem: one job to place on one cluster. Immutable, and validated when it is made.

Quantities are plain numbers in any consistent units (cores or millicores, MiB or bytes, Mbit/s or bit/s).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import compress
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ces_core.model.bounds import LARGEST, SMALLEST, amount, known
from ces_core.model.cards import Cards, CardValue
from ces_core.model.errors import ProblemError
from ces_core.model.goals import UNITS, Goals, Units, check_job, check_units
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.profiles import ClusterProfile, cluster_profile
from ces_core.model.topology import IntArray, Topology

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Basis = Literal["system", "job"]
PathMetric = Literal["hops", "delay"]
RESOURCES = ("cpu", "memory", "gpu")
"""The rows of every per-node array, in order. CPU and memory count towards load imbalance; GPUs only constrain."""
EQUAL_WEIGHTS = (1 / 3, 1 / 3, 1 / 3)
SLACK = 1e-13
"""Relative tolerance for rounding in sums of decimals. Small enough that whole bytes and bits stay exact."""


@dataclass(frozen=True, eq=False)
class Cluster:
    """A topology with its capacities and their current use. Shared by the problems of one snapshot. ``cards``: its GPU
    cards, where which of them is free matters; solvers do not look at them. ``profile``: None: nothing is known."""

    topology: Topology
    node_capacity: FloatArray  # (resources, nodes)
    node_used: FloatArray
    link_capacity: FloatArray  # (links,)
    link_used: FloatArray
    medium_capacity: FloatArray  # (media,)
    cards: Cards | None = None
    profile: ClusterProfile | None = None

    @staticmethod
    def make(nodes: Iterable[Node], links: Iterable[Link], media: Mapping[str, float] | None = None) -> Cluster:
        """A cluster from its parts; ``media`` maps names to capacities.

        Raises ProblemError, naming the field, for unknown or repeated names and invalid numbers. Use above capacity is
        accepted: it happens when a capacity shrinks, and leaves nothing free.
        """
        nodes, links, media = tuple(nodes), tuple(links), dict(media or {})
        if not nodes:
            raise ProblemError("nodes", "there must be at least one node")
        _unique("nodes", [node.name for node in nodes])
        topology = Topology.of(tuple(node.name for node in nodes), tuple(media), *_links(nodes, links, media))
        return Cluster(
            topology=topology,
            node_capacity=_table("nodes", nodes, RESOURCES),
            node_used=_table("nodes", nodes, tuple(f"{resource}_used" for resource in RESOURCES)),
            link_capacity=_table("links", links, ("bandwidth",))[0],
            link_used=_table("links", links, ("bandwidth_used",))[0],
            medium_capacity=_fixed([amount(f"media.{name}", value) for name, value in media.items()]),
            profile=cluster_profile([node.profile for node in nodes], [link.profile for link in links]),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _reduced(self)

    @cached_property
    def medium_used(self) -> FloatArray:
        """(media,): total use by the links of each medium."""
        used = np.zeros(len(self.medium_capacity))
        shared = self.topology.link_medium >= 0
        np.add.at(used, self.topology.link_medium[shared], self.link_used[shared])
        return _fixed(used)

    @cached_property
    def node_free(self) -> FloatArray:
        """(resources, nodes): residual capacity, never negative."""
        return _fixed(np.maximum(self.node_capacity - self.node_used, 0.0))

    @cached_property
    def bandwidth_capacity(self) -> FloatArray:
        """Capacity per path resource: links, then media (see :class:`ces_core.model.path.Path`)."""
        return _fixed(np.concatenate([self.link_capacity, self.medium_capacity]))

    @cached_property
    def bandwidth_free(self) -> FloatArray:
        """Residual capacity per path resource, never negative."""
        used = np.concatenate([self.link_used, self.medium_used])
        return _fixed(np.maximum(self.bandwidth_capacity - used, 0.0))

    def with_used(self, nodes: FloatArray, links: FloatArray, cards: FloatArray | None = None) -> Cluster:
        """The same cluster with this use, (resources, nodes) and (links,), without validating again. ``cards``: see
        Cards; None: as before."""
        used = self.cards if self.cards is None or cards is None else self.cards.with_used(_fixed(cards))
        return replace(self, node_used=_fixed(nodes), link_used=_fixed(links), cards=used)

    def emptied(self) -> Cluster:
        """The same cluster with nothing used."""
        return self.with_used(
            self.node_used * 0, self.link_used * 0, None if self.cards is None else self.cards.used * 0
        )


@dataclass(frozen=True, eq=False)
class Problem:
    """One job on one cluster, with the objective's weights and basis. Make one with :meth:`make`."""

    cluster: Cluster
    name: str
    tasks: tuple[Task, ...]
    flows: tuple[Flow, ...]
    weights: tuple[float, float, float]
    basis: Basis
    demand: FloatArray  # (tasks, resources)
    allowed: BoolArray  # (tasks, nodes); never a switch
    flow_min: FloatArray
    flow_max: FloatArray
    flow_src: IntArray  # a task's index, or -1 - n for node n itself
    flow_dst: IntArray
    paths: int | None = None  # None: hop-shortest paths; K: the K shortest simple paths
    card_value: CardValue | None = None  # on its cluster as it is now
    path_metric: PathMetric = "hops"  # by what the K are the shortest
    goals: Goals | None = None
    units: Units = UNITS

    @staticmethod
    def make(
        cluster: Cluster,
        tasks: Iterable[Task],
        flows: Iterable[Flow] = (),
        *,
        name: str = "job",
        weights: Sequence[float] = EQUAL_WEIGHTS,
        basis: Basis = "system",
        paths: int | None = None,
        path_metric: PathMetric = "hops",
        goals: Goals | None = None,
        units: Units = UNITS,
    ) -> Problem:
        """A problem from its parts. Raises ProblemError, naming the field, for invalid input."""
        tasks, flows = tuple(tasks), tuple(flows)
        if not tasks:
            raise ProblemError("job.tasks", "a job needs at least one task")
        _unique("job.tasks", [task.name for task in tasks])
        for i, task in enumerate(tasks):
            if task.name.startswith("@"):
                raise ProblemError(f"job.tasks[{i}].name", "names that start with @ mean nodes")
        if len(weights) != 3:
            raise ProblemError("weights", f"there are three weights, not {len(weights)}")
        w1, w2, w3 = (amount(f"weights[{i}]", weight) for i, weight in enumerate(weights))
        if basis not in ("system", "job"):
            raise ProblemError("basis", f"must be system or job, not {basis!r}")
        if paths is not None and (isinstance(paths, bool) or not isinstance(paths, int) or paths < 1):
            raise ProblemError("paths", f"must be a whole number from 1 on, or left out for all shortest; is {paths!r}")
        if path_metric not in ("hops", "delay"):
            raise ProblemError("path_metric", f"must be hops or delay, not {path_metric!r}")
        if path_metric == "delay" and paths is None:
            raise ProblemError("paths", "say how many of the paths with the least delay flows may take")
        check_units(units)
        nodes = cluster.topology.node_index
        ends = _flow_ends(tasks, flows, nodes)
        check_job(tasks, flows, goals or Goals(), nodes)
        return Problem(
            cluster=cluster,
            name=name,
            tasks=tasks,
            flows=flows,
            weights=(w1, w2, w3),
            basis=basis,
            demand=_fixed(_table("job.tasks", tasks, RESOURCES).T),
            allowed=_allowed(tasks, nodes, cluster.profile) & (cluster.node_capacity > 0).any(axis=0),
            flow_min=_table("job.flows", flows, ("min",))[0],
            flow_max=_table("job.flows", flows, ("max",))[0],
            **ends,
            paths=paths,
            path_metric=path_metric,
            goals=goals,
            units=units,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _reduced(self)

    @cached_property
    def homes(self) -> BoolArray:
        """(tasks, nodes): whether the task is allowed on the node and fits there alone at current use."""
        free = self.cluster.node_free + SLACK * self.cluster.node_capacity
        homes = self.allowed.copy()
        for needed, left in zip(self.demand.T, free, strict=True):
            homes &= needed[:, None] <= left[None, :]
        homes.setflags(write=False)
        return homes

    @property
    def path_set(self) -> str:
        """Which paths flows may take: ``hop-shortest`` or, say, ``4-shortest`` or ``4-least-delay``."""
        kind = "shortest" if self.path_metric == "hops" else "least-delay"
        return "hop-shortest" if self.paths is None else f"{self.paths}-{kind}"

    @cached_property
    def has_goals(self) -> bool:
        """Whether more than amounts and bandwidth decides: goals, limits on time or load, groups, or sources."""
        tasks = (task.profile for task in self.tasks if task.profile is not None)
        limited = any(each.rate > 0 or each.longest_ms is not None or each.group is not None for each in tasks)
        aimed = self.goals is not None and self.goals != Goals()
        return limited or aimed or any(flow.sources is not None for flow in self.flows)

    def flow_ends(self, assignment: Sequence[int]) -> list[tuple[int, int]]:
        """Each flow's end nodes if task ``t`` runs on node ``assignment[t]``."""

        def node(end: int) -> int:
            return int(assignment[end]) if end >= 0 else -1 - end

        ends = zip(self.flow_src.tolist(), self.flow_dst.tolist(), strict=True)
        return [(node(src), node(dst)) for src, dst in ends]

    def on_empty_cluster(self) -> Problem:
        """The same job on the cluster with nothing else running."""
        return replace(self, cluster=self.cluster.emptied(), card_value=None)


def _reduced(value: Cluster | Problem) -> tuple[Any, ...]:
    """Pickles the fields without what was derived from them, and remembers which arrays are read-only."""
    values = [getattr(value, field.name) for field in fields(value)]
    fixed = [isinstance(each, np.ndarray) and not each.flags.writeable for each in values]
    return _restored, (type(value), values, fixed)


def _restored(cls: Any, values: Sequence[Any], fixed: Sequence[bool]) -> Any:
    for value in compress(values, fixed):
        value.setflags(write=False)
    return cls(*values)


def _fixed(values: Any) -> FloatArray:
    array = np.ascontiguousarray(values, dtype=np.float64)
    array.setflags(write=False)
    return array


def _table(field: str, items: Sequence[Any], names: Sequence[str]) -> FloatArray:
    """One row per name, one column per item. Validated as a whole; item by item only to find the culprit."""
    try:
        array = np.array([[getattr(item, name) for item in items] for name in names], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.full((1,), np.nan)
    if not ((array == 0) | ((array >= SMALLEST) & (array <= LARGEST))).all():
        for i, item in enumerate(items):
            for name in names:
                amount(f"{field}[{i}].{name}", getattr(item, name))
    return _fixed(array)


def _unique(field: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for i, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise ProblemError(f"{field}[{i}].name", f"must be a name, not {name!r}")
        if name in seen:
            raise ProblemError(f"{field}[{i}].name", f"a second {name!r}")
        seen.add(name)


def _links(
    nodes: Sequence[Node], links: Sequence[Link], media: Mapping[str, float]
) -> tuple[IntArray, IntArray, IntArray]:
    """Source, destination and medium indices of every link. Validated as a whole; link by link only to find the
    culprit."""
    node_index = {node.name: i for i, node in enumerate(nodes)}
    medium_index: dict[str | None, int] = {None: -1} | {name: i for i, name in enumerate(media)}
    try:
        src = np.array([node_index[link.src] for link in links], dtype=np.int64)
        dst = np.array([node_index[link.dst] for link in links], dtype=np.int64)
        medium = np.array([medium_index[link.medium] for link in links], dtype=np.int64)
        sound = not (src == dst).any() and bool(np.diff(np.sort(src * len(nodes) + dst)).all())
    except KeyError:
        sound = False
    if not sound:
        _complain(links, node_index, medium_index)
    return src, dst, medium


def _complain(links: Sequence[Link], nodes: Mapping[str, int], media: Mapping[str | None, int]) -> None:
    """Raise ProblemError for the first invalid link."""
    pairs: set[tuple[str, str]] = set()
    for i, link in enumerate(links):
        where = f"links[{i}]"
        for end in ("src", "dst"):
            if getattr(link, end) not in nodes:
                raise ProblemError(f"{where}.{end}", f"no node is called {getattr(link, end)!r}")
        if link.src == link.dst:
            raise ProblemError(f"{where}.dst", f"a link needs two different ends, both are {link.src!r}")
        if (link.src, link.dst) in pairs:
            raise ProblemError(where, f"a second link from {link.src!r} to {link.dst!r}")
        pairs.add((link.src, link.dst))
        if link.medium not in media:
            raise ProblemError(f"{where}.medium", f"no medium is called {link.medium!r}")


def _allowed(tasks: Sequence[Task], nodes: Mapping[str, int], profile: ClusterProfile | None) -> BoolArray:
    allowed = np.ones((len(tasks), len(nodes)), dtype=np.bool_)
    for t, task in enumerate(tasks):
        if task.allowed is not None:
            allowed[t] = False
            for i, name in enumerate(task.allowed):
                known(f"job.tasks[{t}].allowed[{i}]", "node", name, nodes)
                allowed[t, nodes[name]] = True
        if profile is not None and task.profile is not None and task.profile.work is not None:
            allowed[t] &= profile.speeds(task.profile.work.work_class) > 0
    return allowed


def _flow_ends(
    tasks: Sequence[Task], flows: Sequence[Flow], nodes: Mapping[str, int]
) -> dict[Literal["flow_src", "flow_dst"], Any]:
    index = {task.name: i for i, task in enumerate(tasks)}
    pairs: set[tuple[str, str]] = set()
    ends: list[list[int]] = [[], []]
    for i, flow in enumerate(flows):
        where = f"job.flows[{i}]"
        for column, (side, end) in zip(ends, (("src", flow.src), ("dst", flow.dst)), strict=True):
            if end.startswith("@"):
                known(f"{where}.{side}", "node", end[1:], nodes)
                column.append(-1 - nodes[end[1:]])
            else:
                known(f"{where}.{side}", "task", end, index)
                column.append(index[end])
        if flow.src == flow.dst:
            raise ProblemError(f"{where}.dst", f"a flow needs two different ends, both are {flow.src!r}")
        if (flow.src, flow.dst) in pairs:
            raise ProblemError(where, f"a second flow from {flow.src!r} to {flow.dst!r}")
        pairs.add((flow.src, flow.dst))
        if amount(f"{where}.min", flow.min) > amount(f"{where}.max", flow.max):
            raise ProblemError(f"{where}.min", f"min {flow.min} is above max {flow.max}")
    src, dst = (np.array(column, dtype=np.int64) for column in ends)
    src.setflags(write=False)
    dst.setflags(write=False)
    return {"flow_src": src, "flow_dst": dst}
