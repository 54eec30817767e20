"""New paths and rates for running flows after the network has changed; tasks stay on their nodes.

:func:`reroute` handles links that failed or became too small: it moves only flows that must move, and takes bandwidth
from others only where minimums do not fit otherwise. :func:`reoptimise` uses capacity that became free: it recomputes
all rates, and moves a flow only where that pays. Paths come from :func:`ces_core.bandwidth.composite.complete`, rates
from :func:`ces_core.bandwidth.linear.best_value`, as for any given placement.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from ces_core.bandwidth.composite import complete
from ces_core.bandwidth.linear import best_value
from ces_core.model.objective import evaluate
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.path import Path
from ces_core.model.problem import SLACK, Cluster, FloatArray, Problem
from ces_core.network.cache import paths_of

DETOURS = 8
"""Number of shortest simple paths examined where the hop-shortest ones lack capacity."""
LEAST_GAIN = 1e-3
"""Minimum gain in the composite that justifies changing running traffic."""
SAME = 1e-6
"""Rates that would rise by less than this share stay unchanged."""


@dataclass(frozen=True)
class Running:
    """A running flow: its current ``path`` as node names and its ``rate``, which is below ``low`` where the minimum did
    not fit. Rates in the cluster's unit."""

    low: float
    high: float
    path: tuple[str, ...]
    rate: float


@dataclass(frozen=True)
class FlowChange:
    """New path and rate of a flow. ``rate`` is below the flow's minimum only where no path can keep it, and zero where
    no path exists; the path is then the previous one."""

    path: tuple[str, ...]
    rate: float


def reroute(cluster: Cluster, flows: Sequence[Running]) -> dict[int, FlowChange]:
    """Changes, by flow index, after which every flow uses existing links and no link is overloaded. ``cluster`` is the
    current network; its ``link_used`` excludes these flows. Earlier flows keep their minimums first.

    Only flows on broken paths or overloaded links are moved. Only flows that share a link with them lose rate, and only
    where minimums do not fit otherwise.
    """
    return _State.of(cluster, flows).rerouted().changes()


def reoptimise(cluster: Cluster, flows: Sequence[Running]) -> dict[int, FlowChange]:
    """Changes, by flow index, that maximise the value of all rates: minimums first, then the composite. Empty where no
    flow gets closer to its minimum, the gain is below ``LEAST_GAIN``, and nothing needs rerouting. Where no flow lacks
    anything, the composite is never lower than after :func:`reroute` alone."""
    return _State.of(cluster, flows).rerouted().reoptimised().changes()


def warm_up() -> None:
    """Compiles and imports everything later calls need; takes less than a second with a warm cache."""
    links = [Link(a, b, 10.0) for a, b in ("ab", "bc", "ac")]
    cluster = Cluster.make([Node(name) for name in "abc"], links)
    flows = [Running(6.0, 9.0, ("a", "c"), 9.0), Running(6.0, 9.0, ("a", "c"), 9.0)]
    reroute(cluster, flows)  # both fit only if one takes a longer path
    reoptimise(cluster, [Running(1.0, 9.0, ("a", "b", "c"), 1.0)])


@dataclass(frozen=True, eq=False)
class _State:
    """Flows with their current paths and rates. A path of None uses a link that no longer exists."""

    cluster: Cluster
    flows: tuple[Running, ...]
    paths: tuple[Path | None, ...]
    rates: FloatArray

    @staticmethod
    def of(cluster: Cluster, flows: Sequence[Running]) -> _State:
        nothing = np.zeros_like(cluster.node_capacity)  # nodes play no role here
        bare = replace(cluster, node_capacity=nothing, node_used=nothing)
        paths = tuple(_known(cluster, flow.path) for flow in flows)
        return _State(bare, tuple(flows), paths, np.array([flow.rate for flow in flows], dtype=np.float64))

    def changes(self) -> dict[int, FlowChange]:
        names = self.cluster.topology.nodes
        found = {}
        for i, (flow, path, rate) in enumerate(zip(self.flows, self.paths, self.rates.tolist(), strict=True)):
            now = flow.path if path is None else tuple(names[node] for node in path.nodes)
            # Every decrease counts, as another flow may receive it.
            if now != flow.path or rate > flow.rate * (1 + SAME) or rate < flow.rate * (1 - SLACK):
                found[i] = FlowChange(now, rate)
        return found

    # Diagnosis

    @cached_property
    def floors(self) -> FloatArray:
        """The rate each flow keeps in any case: its minimum, or its current rate if lower."""
        return np.minimum(self.rates, [flow.low for flow in self.flows])

    def load(self, rates: FloatArray, of: Iterable[int] | None = None) -> FloatArray:
        """Load of the flows (all, or those with the given indices) on each resource."""
        total = np.zeros(len(self.cluster.bandwidth_capacity))
        for i in range(len(self.flows)) if of is None else of:
            for resource, times in self._loads(i):
                total[resource] += times * rates[i]
        return total

    def _loads(self, i: int) -> Iterable[tuple[int, int]]:
        path = self.paths[i]
        return () if path is None else path.loads

    def over(self, rates: FloatArray) -> FloatArray:
        """Excess load on each resource."""
        capacity = self.cluster.bandwidth_capacity
        used = np.concatenate([self.cluster.link_used, self.cluster.medium_used])
        excess = used + self.load(rates) - capacity
        return np.where(
            excess > 4 * SLACK * capacity, excess, 0.0
        )  # rates were computed with one slack each, then summed

    def crossing(self, resources: Collection[int]) -> list[int]:
        """The flows that use any of these resources."""
        return [i for i in range(len(self.flows)) if any(resource in resources for resource, _ in self._loads(i))]

    # Rerouting

    def rerouted(self) -> _State:
        """The state with broken and overloaded paths replaced; see :func:`reroute`."""
        crowded = self.crossing(set(np.flatnonzero(self.over(self.rates)).tolist()))
        state = self._without(self._flows_to_move())
        unrouted = [i for i, path in enumerate(state.paths) if path is None]
        if not crowded and not unrouted:
            return self
        lowered = [i for i in crowded if state.paths[i] is not None]
        held = state.rates.copy()
        held[lowered] = state.floors[lowered]
        routed = state._routed(unrouted, held)
        if routed is not None:
            return routed._with_best_rates([*lowered, *unrouted])
        routed = state._routed(unrouted, state.floors)
        if routed is None:
            routed = state._routed_one_by_one(unrouted, self.paths)
        shared = {resource for i in unrouted for resource, _ in routed._loads(i)}
        return routed._with_best_rates({*lowered, *unrouted, *routed.crossing(shared)})

    def _flows_to_move(self) -> list[int]:
        """Flows that must leave resources that cannot carry even the minimums: for each resource the smallest
        sufficient flow, else the largest, and so on."""
        gone: list[int] = []
        state = self
        while (over := state.over(state.floors)).any():
            worst = int(np.argmax(over))
            here = sorted(state.crossing({worst}), key=lambda i: (state.floors[i], -i))
            here = [i for i in here if state.floors[i] > 0]
            if not here:  # other traffic alone is too much
                break
            chosen = next((i for i in here if state.floors[i] >= over[worst]), here[-1])
            gone.append(chosen)
            state = state._without([chosen])
        return gone

    def _without(self, gone: Collection[int]) -> _State:
        paths = tuple(None if i in gone else path for i, path in enumerate(self.paths))
        return replace(self, paths=paths)

    def _routed(self, unrouted: Sequence[int], held: FloatArray) -> _State | None:
        """With paths that carry the minimums of ``unrouted``, while the others hold ``held``; None where there are
        none."""
        if not unrouted:
            return self
        if any(self._ends(i) is None for i in unrouted):
            return None
        lows = [self.flows[i].low for i in unrouted]
        for paths in (None, DETOURS):
            problem, ends = self._problem(unrouted, lows, held, paths)
            found = complete(problem, ends)
            if found is not None:
                return self._with(dict(zip(unrouted, found.paths, strict=True)), dict(zip(unrouted, lows, strict=True)))
        return None

    def _routed_one_by_one(self, unrouted: Sequence[int], before: Sequence[Path | None]) -> _State:
        """The same where not all minimums fit: each flow in turn gets the best path available."""
        state = self
        for i in unrouted:
            routed = state._routed([i], state.floors)
            state = routed if routed is not None else state._widest(i, before[i])
        return state

    def _widest(self, i: int, before: Path | None) -> _State:
        """With the flow on its path of largest residual capacity, if there is one."""
        ends = self._ends(i)
        if ends is None:
            return self._with({i: None}, {i: 0.0})
        used = np.concatenate([self.cluster.link_used, self.cluster.medium_used]) + self.load(self.floors)
        free = np.maximum(self.cluster.bandwidth_capacity - used, 0.0)
        candidates = [
            *([before] if before is not None else []),
            *paths_of(self.cluster.topology, DETOURS).between(*ends),
        ]
        if not candidates:
            return self._with({i: None}, {i: 0.0})
        residual = [min(float(free[resource]) / times for resource, times in path.loads) for path in candidates]
        best = int(np.argmax(residual))
        rate = min(residual[best], self.flows[i].low)
        return self._with({i: candidates[best]}, {i: rate})

    # Rates

    def _with_best_rates(self, chosen: Iterable[int]) -> _State:
        """With optimal rates for the chosen flows on their paths, each at least its floor."""
        these = [i for i in sorted(set(chosen)) if (path := self.paths[i]) is not None and path.loads]
        if not these:
            return self
        lows = [float(self.floors[i]) for i in these]
        problem, _ = self._problem(these, lows, self.rates, None)
        found = best_value(problem, [[path] for i in these if (path := self.paths[i]) is not None])
        rates = lows if found is None else found.bandwidth.tolist()  # None: they fit but for rounding
        return self._with({}, dict(zip(these, rates, strict=True)))

    def reoptimised(self) -> _State:
        """A better state if there is one; see :func:`reoptimise`. Must be rerouted already."""
        everyone = range(len(self.flows))
        found = self._lifted()._with_best_rates(everyone)
        improvable = [i for i in everyone if self._may_improve(i)]
        if improvable:
            returned = self._without(improvable)._routed(improvable, self.floors)
            if returned is not None:
                returned = returned._with_best_rates(everyone)
                found = returned if returned.is_better_than(found) else found
        return found if found.is_better_than(self) else self

    def _lifted(self) -> _State:
        """With the minimum for each flow below it, where its path can carry it beside the others' floors."""
        state = self
        for i, flow in enumerate(self.flows):
            if state.rates[i] < flow.low and self.paths[i] is not None:
                lifted = state._with({}, {i: flow.low})
                state = state if lifted.over(lifted.floors).any() else lifted
        return state

    def _may_improve(self, i: int) -> bool:
        """Whether another path could be better: the flow is below its minimum, or its path is longer than necessary."""
        path, ends = self.paths[i], self._ends(i)
        if path is None or not path.loads or ends is None:
            return False
        hops = int(paths_of(self.cluster.topology).hops_to(ends[1])[ends[0]])
        return bool(self.rates[i] < self.flows[i].low) or len(path.links) > hops

    def is_better_than(self, other: _State) -> bool:
        """Whether the improvement justifies changing traffic: minimums count first, then the composite. (A flow whose
        minimum equals its maximum counts as satisfied at any rate.)"""
        less = other.shortage() - self.shortage()
        return less > SAME or (less >= -SAME and self.worth() > other.worth() + LEAST_GAIN)

    def shortage(self) -> float:
        """Sum over flows of the missing share of the minimum."""
        pairs = zip(self.flows, self.rates.tolist(), strict=True)
        return math.fsum(max(1.0 - rate / flow.low, 0.0) for flow, rate in pairs if flow.low > 0)

    def worth(self) -> float:
        """The part of the composite that depends on bandwidth."""
        these = [i for i, path in enumerate(self.paths) if path is not None]
        if not these:
            return 0.0
        problem, ends = self._problem(these, [self.flows[i].low for i in these], np.zeros(len(self.flows)), None)
        paths = [path for i in these if (path := self.paths[i]) is not None]
        return evaluate(problem, ends, paths, self.rates[these].tolist()).composite

    # Helpers

    def _with(self, paths: Mapping[int, Path | None], rates: Mapping[int, float]) -> _State:
        changed = self.rates.copy()
        for i, rate in rates.items():
            changed[i] = rate if rate > SAME * self.flows[i].low else 0.0  # drop rounding residue
        changed_paths = tuple(paths.get(i, path) for i, path in enumerate(self.paths))
        return _State(self.cluster, self.flows, changed_paths, changed)

    def _ends(self, i: int) -> tuple[int, int] | None:
        index, path = self.cluster.topology.node_index, self.flows[i].path
        ends = index.get(path[0]), index.get(path[-1])
        return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])

    def _problem(
        self, these: Sequence[int], lows: Sequence[float], held: FloatArray, paths: int | None
    ) -> tuple[Problem, list[int]]:
        """These flows as one job between tasks without demand, and the tasks' nodes; the other flows hold ``held``."""
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
    """The path over these nodes; None where a node or link no longer exists."""
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
