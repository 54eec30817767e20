"""An application's graph before it is divided, what one part may hold, and the parts that it was divided into."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
RESOURCES = ("cpu", "memory", "gpu")
UNITS = {"cpu": "millicores", "memory": "bytes", "gpu": "cards"}
EPSILON = 1e-9  # of a capacity, by which sums of many amounts may exceed it


class IndivisibleError(ValueError):
    """The graph cannot be divided as asked. The message says why, ``field`` which wish is to be changed."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class Vertex:
    """``cpu`` in millicores, ``memory`` and ``state`` in bytes, ``gpu`` in cards. ``arch``: None where any will do.
    ``near``: it has to be near the user (True), must not take room there (False), or either (None). ``state``: what has
    to follow a user who moves."""

    name: str
    cpu: float
    memory: float = 0.0
    gpu: float = 0.0
    arch: str | None = None
    work_class: str | None = None
    near: bool | None = None
    state: float = 0.0


@dataclass(frozen=True)
class Edge:
    """Traffic from one vertex to another, by index: least and most, in bit/s."""

    src: int
    dst: int
    min: float
    max: float


@dataclass(frozen=True)
class Graph:
    name: str
    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]

    @staticmethod
    def of(name: str, vertices: Iterable[Vertex], edges: Iterable[tuple[str, str, float, float]]) -> Graph:
        """``edges``: names of both ends, least and most traffic. Every end is a vertex, whose name no other has."""
        known = tuple(vertices)
        index = {vertex.name: place for place, vertex in enumerate(known)}
        return Graph(name, known, tuple(Edge(index[src], index[dst], low, high) for src, dst, low, high in edges))


@dataclass(frozen=True)
class Limits:
    """The most that one part may ask for; None: no bound."""

    cpu: float | None = None
    memory: float | None = None
    gpu: float | None = None


@dataclass(frozen=True, eq=False)
class Division:
    """What a method divides. ``amounts``: of each vertex, shape (resources, vertices); ``most``: of a part, shape
    (resources,); ``label``: of each vertex, -1 where it may share a part with any other: vertices with two different
    labels never share one. ``ends``: shape (pairs, 2), the lower index first; ``traffic``: of each pair in both
    directions, bit/s."""

    amounts: Floats
    most: Floats
    label: Integers
    ends: Integers
    traffic: Floats

    @property
    def size(self) -> int:
        return int(self.amounts.shape[1])

    @cached_property
    def neighbours(self) -> tuple[dict[int, float], ...]:
        """Of each vertex: neighbour -> traffic in both directions."""
        found: tuple[dict[int, float], ...] = tuple({} for _ in range(self.size))
        for (a, b), traffic in zip(self.ends.tolist(), self.traffic.tolist(), strict=True):
            found[a][b] = found[b][a] = traffic
        return found

    @cached_property
    def ceiling(self) -> Floats:
        """``most``, with what sums of many amounts may exceed it by."""
        return self.most * (1 + EPSILON)

    def fits(self, amounts: Floats) -> bool:
        """Whether one part may hold these amounts, shape (resources,)."""
        return bool(np.all(amounts <= self.ceiling))

    def cut(self, part: Integers) -> float:
        """Traffic between different parts, bit/s. ``part``: of each vertex."""
        return float(self.traffic[part[self.ends[:, 0]] != part[self.ends[:, 1]]].sum())

    def loads(self, part: Integers, parts: int) -> Floats:
        """Amounts of each part, shape (resources, parts)."""
        return np.stack([np.bincount(part, row, parts) for row in self.amounts])

    def broken(self, part: Integers) -> list[str]:
        """What is wrong with an answer; empty where each part holds at most what it may, of one label, and parts are
        counted from 0 without a gap."""
        count = int(part.max()) + 1
        wrong = [] if set(part.tolist()) == set(range(count)) else ["a part is empty"]
        for index in range(count):
            inside = part == index
            if not self.fits(self.amounts[:, inside].sum(axis=1)):
                wrong.append(f"part {index} is above its capacity")
            if len({*self.label[inside].tolist()} - {-1}) > 1:
                wrong.append(f"part {index} mixes vertices that must not share one")
        return wrong

    def merged(self, group: Integers) -> Division:
        """The smaller division whose vertices are groups of this one's, counted from 0."""
        count = int(group.max()) + 1
        label = np.full(count, -1, np.int64)
        np.maximum.at(label, group, self.label)
        ends = np.sort(group[self.ends], axis=1)
        apart = ends[:, 0] != ends[:, 1]
        pairs, which = np.unique(ends[apart], axis=0, return_inverse=True)
        traffic = np.bincount(which.ravel(), self.traffic[apart], len(pairs)).astype(np.float64)
        return Division(self.loads(group, count), self.most, label, pairs.reshape(-1, 2), traffic)


def division(graph: Graph, limits: Limits, *, pure: bool = False) -> Division:
    """The graph as methods see it. Parts never mix architectures; ``pure``: nor classes, and a vertex that names none
    is of its own kind. Raises IndivisibleError where a vertex alone is more than a part may hold."""
    vertices = graph.vertices
    amounts = np.array([[getattr(each, name) for each in vertices] for name in RESOURCES], np.float64)
    bounds = [getattr(limits, name) for name in RESOURCES]
    most = np.array([np.inf if bound is None else bound for bound in bounds])
    for name, row, bound in zip(RESOURCES, amounts, most, strict=True):
        if row.max() > bound:
            largest = vertices[int(row.argmax())].name
            asks = f"{row.max():g} {UNITS[name]}"
            raise IndivisibleError(name, f"the vertex {largest} alone asks for {asks}, and a part may for {bound:g}")
    kinds = [(each.arch, each.work_class) if pure else each.arch for each in vertices]
    known = {kind: index for index, kind in enumerate(sorted({*kinds} - {None}, key=str))}
    label = np.array([known.get(kind, -1) for kind in kinds], np.int64)
    pairs: dict[tuple[int, int], float] = {}
    for edge in graph.edges:
        pair = (min(edge.src, edge.dst), max(edge.src, edge.dst))
        pairs[pair] = pairs.get(pair, 0.0) + edge.max
    ends = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    traffic = np.array([pairs[a, b] for a, b in ends.tolist()], np.float64)
    return Division(amounts, most, label, ends, traffic)


def even_limits(graph: Graph, parts: int) -> Limits:
    """The bound on CPU where nobody set one: an even share and the largest vertex, less its own share of it. Parts of
    this size can always be packed, as far as CPU goes (Graham 1969)."""
    cpu = [each.cpu for each in graph.vertices]
    return Limits(cpu=sum(cpu) / parts + max(cpu) * (1 - 1 / parts))


@dataclass(frozen=True)
class Flow:
    """Traffic from one part to another, by index: least and most, in bit/s."""

    src: int
    dst: int
    min: float
    max: float


@dataclass(frozen=True)
class Parts:
    """A graph that was divided. ``members``: vertices of each part by index, parts by their first vertex.
    ``bound``: less cannot be cut by as many parts, bit/s; None where the method does not say."""

    graph: Graph
    members: tuple[tuple[int, ...], ...]
    flows: tuple[Flow, ...]
    bound: float | None = None

    @property
    def cut(self) -> float:
        """Traffic between parts, bit/s."""
        return sum(flow.max for flow in self.flows)

    @property
    def gap(self) -> float | None:
        """How far the cut may be from the least one, as a share of it; 0 is proven to be the least."""
        if self.bound is None:
            return None
        return max(0.0, 1 - self.bound / self.cut) if self.cut else 0.0

    def amount(self, part: int, resource: str) -> float:
        """What a part asks for."""
        return float(sum(getattr(self.graph.vertices[v], resource) for v in self.members[part]))

    def archs(self, part: int) -> set[str]:
        return {arch for v in self.members[part] if (arch := self.graph.vertices[v].arch) is not None}


def parts_of(graph: Graph, part: Sequence[int] | Integers, bound: float | None = None) -> Parts:
    """The parts, with their traffic summed for each direction. ``part``: of each vertex, any whole numbers."""
    order: dict[int, list[int]] = {}
    for vertex, index in enumerate(part):
        order.setdefault(int(index), []).append(vertex)
    number = {index: place for place, index in enumerate(order)}
    flows: dict[tuple[int, int], list[float]] = {}
    for edge in graph.edges:
        ends = number[int(part[edge.src])], number[int(part[edge.dst])]
        if ends[0] != ends[1]:
            sums = flows.setdefault(ends, [0.0, 0.0])
            sums[0] += edge.min
            sums[1] += edge.max
    summed = tuple(Flow(a, b, low, high) for (a, b), (low, high) in sorted(flows.items()))
    return Parts(graph, tuple(tuple(each) for each in order.values()), summed, bound)
