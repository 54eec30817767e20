"""New paths and rates for flows that run already, when the network under them has changed. Tasks stay where they are.

:func:`mend` is for a link that died or became too small: it moves the flows that have to move, and takes from others
only where these do not fit otherwise. :func:`refill` is for room that appeared: it settles all rates anew, and moves a
flow only where that pays. Paths are those of :func:`ces_core.bandwidth.complete`, rates those of
:func:`ces_core.linear.best_value`: what settles bandwidth for a placement that is given.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from ces_core.bandwidth import complete
from ces_core.linear import best_value
from ces_core.objective import evaluate
from ces_core.paths import Path
from ces_core.problem import SLACK, Cluster, FloatArray, Flow, Link, Node, Problem, Task

DETOURS = 8
"""So many of the shortest simple paths are looked at where the hop-shortest ones have no room."""
LEAST_GAIN = 1e-3
"""Of the composite: what a re-fill must gain to be worth touching traffic for."""
SAME = 1e-6
"""A rate that would rise by less than this share stays as it is."""


@dataclass(frozen=True)
class Running:
    """A flow between two nodes: ``path`` by names, as it is now; ``rate``, which is below ``low`` where that did not
    fit. Rates in the cluster's unit."""

    low: float
    high: float
    path: tuple[str, ...]
    rate: float


@dataclass(frozen=True)
class Given:
    """What a flow shall have. ``rate`` is below the flow's minimum only where no way was found to keep it, and zero
    where there is no way at all: the path is then the one it had."""

    path: tuple[str, ...]
    rate: float


def mend(cluster: Cluster, flows: Sequence[Running]) -> dict[int, Given]:
    """What changes, by index, so that every flow has a path of links that are there, and no link carries more than it
    can. ``cluster``: the network as it is now; its ``link_used`` is what others than these flows use. Flows that come
    first keep their minimum first.

    Only flows whose path is broken, or that are too much for a link on it, are moved. Only those that share a link with
    them lose rate, and only where minimums do not fit otherwise.
    """
    return _State.of(cluster, flows).mended().changes()


def refill(cluster: Cluster, flows: Sequence[Running]) -> dict[int, Given]:
    """What changes, by index, so that the rates are worth most together: minimums first, then the composite. Nothing
    where no flow comes nearer to its minimum, that gains less than ``LEAST_GAIN``, and mends nothing. Where no flow
    lacks anything, the composite is never lower afterwards than after mending alone."""
    return _State.of(cluster, flows).mended().refilled().changes()


def warm_up() -> None:
    """Has everything compiled and imported that later calls use: less than a second where compiled code is kept."""
    links = [Link(a, b, 10.0) for a, b in ("ab", "bc", "ac")]
    cluster = Cluster.make([Node(name) for name in "abc"], links)
    flows = [Running(6.0, 9.0, ("a", "c"), 9.0), Running(6.0, 9.0, ("a", "c"), 9.0)]
    mend(cluster, flows)  # there is no room for both but on a longer way
    refill(cluster, [Running(1.0, 9.0, ("a", "b", "c"), 1.0)])


@dataclass(frozen=True, eq=False)
class _State:
    """Flows with the paths and rates of the moment. A path of None: a link of it is not there."""

    cluster: Cluster
    flows: tuple[Running, ...]
    paths: tuple[Path | None, ...]
    rates: FloatArray

    @staticmethod
    def of(cluster: Cluster, flows: Sequence[Running]) -> _State:
        nothing = np.zeros_like(cluster.node_capacity)  # nodes are nobody's matter here
        bare = replace(cluster, node_capacity=nothing, node_used=nothing)
        paths = tuple(_known(cluster, flow.path) for flow in flows)
        return _State(bare, tuple(flows), paths, np.array([flow.rate for flow in flows], dtype=np.float64))

    def changes(self) -> dict[int, Given]:
        names = self.cluster.topology.nodes
        found = {}
        for i, (flow, path, rate) in enumerate(zip(self.flows, self.paths, self.rates.tolist(), strict=True)):
            way = flow.path if path is None else tuple(names[node] for node in path.nodes)
            # What is taken from one may be given to another, however little it is.
            if way != flow.path or rate > flow.rate * (1 + SAME) or rate < flow.rate * (1 - SLACK):
                found[i] = Given(way, rate)
        return found

    # what is wrong

    @cached_property
    def floors(self) -> FloatArray:
        """What each flow keeps in any case: its minimum, or less where it has less."""
        return np.minimum(self.rates, [flow.low for flow in self.flows])

    def load(self, rates: FloatArray, of: Iterable[int] | None = None) -> FloatArray:
        """What flows (all, or those of these indices) put on each resource that a path can use."""
        total = np.zeros(len(self.cluster.bandwidth_capacity))
        for i in range(len(self.flows)) if of is None else of:
            for resource, times in self._loads(i):
                total[resource] += times * rates[i]
        return total

    def _loads(self, i: int) -> Iterable[tuple[int, int]]:
        path = self.paths[i]
        return () if path is None else path.loads

    def over(self, rates: FloatArray) -> FloatArray:
        """By how much each resource has too much on it."""
        capacity = self.cluster.bandwidth_capacity
        used = np.concatenate([self.cluster.link_used, self.cluster.medium_used])
        excess = used + self.load(rates) - capacity
        return np.where(excess > 4 * SLACK * capacity, excess, 0.0)  # rates were settled with one, and then summed up

    def crossing(self, resources: Collection[int]) -> list[int]:
        """The flows that use any of these."""
        return [i for i in range(len(self.flows)) if any(resource in resources for resource, _ in self._loads(i))]

    # mending

    def mended(self) -> _State:
        crowded = self.crossing(set(np.flatnonzero(self.over(self.rates)).tolist()))
        state = self._without(self._evicted())
        homeless = [i for i, path in enumerate(state.paths) if path is None]
        if not crowded and not homeless:
            return self
        lowered = [i for i in crowded if state.paths[i] is not None]
        held = state.rates.copy()
        held[lowered] = state.floors[lowered]
        placed = state._placed(homeless, held)
        if placed is not None:
            return placed._settled([*lowered, *homeless])
        placed = state._placed(homeless, state.floors)
        if placed is None:
            placed = state._placed_one_by_one(homeless, self.paths)
        shared = {resource for i in homeless for resource, _ in placed._loads(i)}
        return placed._settled({*lowered, *homeless, *placed.crossing(shared)})

    def _evicted(self) -> list[int]:
        """Flows that must leave a resource which does not even carry the minimums: for each, the smallest that is
        enough, else the largest, and so on."""
        gone: list[int] = []
        state = self
        while (over := state.over(state.floors)).any():
            worst = int(np.argmax(over))
            here = sorted(state.crossing({worst}), key=lambda i: (state.floors[i], -i))
            here = [i for i in here if state.floors[i] > 0]
            if not here:  # what others use is too much already
                break
            chosen = next((i for i in here if state.floors[i] >= over[worst]), here[-1])
            gone.append(chosen)
            state = state._without([chosen])
        return gone

    def _without(self, gone: Collection[int]) -> _State:
        paths = tuple(None if i in gone else path for i, path in enumerate(self.paths))
        return replace(self, paths=paths)

    def _placed(self, homeless: Sequence[int], held: FloatArray) -> _State | None:
        """With paths for the homeless that carry their minimums, while the others have what ``held`` says."""
        if not homeless:
            return self
        if any(self._ends(i) is None for i in homeless):
            return None
        lows = [self.flows[i].low for i in homeless]
        for paths in (None, DETOURS):
            problem, ends = self._problem(homeless, lows, held, paths)
            found = complete(problem, ends)
            if found is not None:
                return self._with(dict(zip(homeless, found.paths, strict=True)), dict(zip(homeless, lows, strict=True)))
        return None

    def _placed_one_by_one(self, homeless: Sequence[int], before: Sequence[Path | None]) -> _State:
        """The same where not all minimums fit: each flow in turn as well as it can."""
        state = self
        for i in homeless:
            placed = state._placed([i], state.floors)
            state = placed if placed is not None else state._widest(i, before[i])
        return state

    def _widest(self, i: int, before: Path | None) -> _State:
        """With the flow on the path that has most room for it, if any leads there."""
        ends = self._ends(i)
        if ends is None:
            return self._with({i: None}, {i: 0.0})
        used = np.concatenate([self.cluster.link_used, self.cluster.medium_used]) + self.load(self.floors)
        free = np.maximum(self.cluster.bandwidth_capacity - used, 0.0)
        ways = [*([before] if before is not None else []), *self.cluster.topology.routes(DETOURS).between(*ends)]
        if not ways:
            return self._with({i: None}, {i: 0.0})
        room = [min(float(free[resource]) / times for resource, times in way.loads) for way in ways]
        best = int(np.argmax(room))
        rate = min(room[best], self.flows[i].low)
        return self._with({i: ways[best]}, {i: rate})

    # rates

    def _settled(self, chosen: Iterable[int]) -> _State:
        """With the rates of the chosen flows settled anew on their paths, each from its floor up."""
        these = [i for i in sorted(set(chosen)) if (path := self.paths[i]) is not None and path.loads]
        if not these:
            return self
        lows = [float(self.floors[i]) for i in these]
        problem, _ = self._problem(these, lows, self.rates, None)
        found = best_value(problem, [[path] for i in these if (path := self.paths[i]) is not None])
        rates = lows if found is None else found.bandwidth.tolist()  # None: they just fit, but for rounding
        return self._with({}, dict(zip(these, rates, strict=True)))

    def refilled(self) -> _State:
        """Mended already."""
        everyone = range(len(self.flows))
        found = self._lifted()._settled(everyone)
        astray = [i for i in everyone if self._is_astray(i)]
        if astray:
            home = self._without(astray)._placed(astray, self.floors)
            if home is not None:
                home = home._settled(everyone)
                found = home if home.is_better_than(found) else found
        return found if found.is_better_than(self) else self

    def _lifted(self) -> _State:
        """With the minimum for each flow that has less, where its path has room for it beside the others' floors."""
        state = self
        for i, flow in enumerate(self.flows):
            if state.rates[i] < flow.low and self.paths[i] is not None:
                lifted = state._with({}, {i: flow.low})
                state = state if lifted.over(lifted.floors).any() else lifted
        return state

    def _is_astray(self, i: int) -> bool:
        """Whether another path could be better: it has less than its minimum, or goes a longer way than there is."""
        path, ends = self.paths[i], self._ends(i)
        if path is None or not path.loads or ends is None:
            return False
        hops = int(self.cluster.topology.paths.hops_to(ends[1])[ends[0]])
        return bool(self.rates[i] < self.flows[i].low) or len(path.links) > hops

    def is_better_than(self, other: _State) -> bool:
        """Whether it is worth touching traffic for: minimums come first, then the composite. (Where minimum and maximum
        are the same, a flow counts as satisfied with any rate at all.)"""
        less = other.shortage() - self.shortage()
        return less > SAME or (less >= -SAME and self.worth() > other.worth() + LEAST_GAIN)

    def shortage(self) -> float:
        """What flows lack of their minimums, each as a share of its own, summed."""
        pairs = zip(self.flows, self.rates.tolist(), strict=True)
        return math.fsum(max(1.0 - rate / flow.low, 0.0) for flow, rate in pairs if flow.low > 0)

    def worth(self) -> float:
        """The composite, as far as it depends on bandwidth."""
        these = [i for i, path in enumerate(self.paths) if path is not None]
        if not these:
            return 0.0
        problem, ends = self._problem(these, [self.flows[i].low for i in these], np.zeros(len(self.flows)), None)
        paths = [path for i in these if (path := self.paths[i]) is not None]
        return evaluate(problem, ends, paths, self.rates[these].tolist()).composite

    # parts

    def _with(self, paths: Mapping[int, Path | None], rates: Mapping[int, float]) -> _State:
        changed = self.rates.copy()
        for i, rate in rates.items():
            changed[i] = rate if rate > SAME * self.flows[i].low else 0.0  # no rate, but what rounding left
        ways = tuple(paths.get(i, path) for i, path in enumerate(self.paths))
        return _State(self.cluster, self.flows, ways, changed)

    def _ends(self, i: int) -> tuple[int, int] | None:
        index, path = self.cluster.topology.node_index, self.flows[i].path
        ends = index.get(path[0]), index.get(path[-1])
        return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])

    def _problem(
        self, these: Sequence[int], lows: Sequence[float], held: FloatArray, paths: int | None
    ) -> tuple[Problem, list[int]]:
        """These flows as one job's, between tasks that ask for nothing, and the nodes of those; the other flows have
        what ``held`` says."""
        others = set(range(len(self.flows))) - set(these)
        used = self.cluster.link_used + self.load(held, others)[: len(self.cluster.link_used)]
        cluster = self.cluster.with_used(self.cluster.node_used, used)
        tasks: list[Task] = []
        flows: list[Flow] = []
        ends: list[int] = []
        for i, low in zip(these, lows, strict=True):
            tasks += [Task(f"from {i}"), Task(f"to {i}")]
            flows.append(Flow(f"from {i}", f"to {i}", low, max(low, self.flows[i].high)))
            ends += self._ends(i) or ()
        return Problem.make(cluster, tasks, flows, paths=paths), ends


def _known(cluster: Cluster, names: Sequence[str]) -> Path | None:
    """The path over these nodes; None where a node or link of it is not there."""
    topology = cluster.topology
    nodes = [topology.node_index.get(name) for name in names]
    steps = [None if a is None or b is None else topology.link_index.get((a, b)) for a, b in pairwise(nodes)]
    links = [link for link in steps if link is not None]
    if len(links) < len(steps) or None in nodes:
        return None
    media = Counter(medium for link in links if (medium := int(topology.link_medium[link])) >= 0)
    first = len(topology.link_src)
    loads = [*((link, 1) for link in links), *((first + medium, times) for medium, times in sorted(media.items()))]
    return Path(tuple(node for node in nodes if node is not None), tuple(links), tuple(loads))
