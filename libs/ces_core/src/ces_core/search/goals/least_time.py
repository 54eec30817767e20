"""The least time that a chain can take, by variable elimination over its tasks (R. Dechter, "Bucket elimination",
Artificial Intelligence 113, 1999): each task on the node, each flow on the path and at the rate that suit the chain, as
if nothing else were placed. No plan is faster.
"""

from __future__ import annotations

import math

import numpy as np

from ces_core.model.problem import SLACK, BoolArray, FloatArray, Problem
from ces_core.model.service import Service, Step
from ces_core.model.topology import IntArray
from ces_core.network.cache import paths_for
from ces_core.network.path_table import PathTable

LARGEST = 300_000
"""Maximum entries of a table; a chain that would need larger ones is not examined."""
Factor = tuple[tuple[int, ...], FloatArray]
"""Tasks, and the ms of each choice of their nodes; nodes are counted among those that the task may have."""


class LeastTime:
    """Of the chains of one problem. ``domain``: (T, N), where each task may be."""

    def __init__(self, problem: Problem, service: Service, domain: BoolArray) -> None:
        self.problem, self.service = problem, service
        self.homes: list[IntArray] = [np.flatnonzero(row) for row in domain]
        self.routes: PathTable = paths_for(problem)
        self.free = problem.cluster.bandwidth_free + SLACK * problem.cluster.bandwidth_capacity

    def of(self, c: int) -> tuple[float, tuple[Step, ...]] | None:
        """The least ms of chain ``c`` with its steps; infinite where there is no way, without steps where a
        task has no node. None: too large."""
        service = self.service
        tasks, flows = service.chain_tasks[c], service.chain_flows[c]
        ends = [(int(self.problem.flow_src[f]), int(self.problem.flow_dst[f])) for f in flows]
        involved = {*tasks, *(end for pair in ends for end in pair if end >= 0)}
        if not all(len(self.homes[t]) for t in involved):
            return math.inf, ()
        if any(len(self.homes[a]) * len(self.homes[b]) > LARGEST for a, b in ends if a >= 0 and b >= 0):
            return None
        factors = [self._task(t) for t in tasks] + [self._flow(f, *pair) for f, pair in zip(flows, ends, strict=True)]
        place = self._places(involved, factors)
        if place is None:
            return None
        fixed = service.goals.chains[c].fixed_ms
        steps = [Step("access", fixed)] if fixed else []
        names = self.problem.cluster.topology.nodes
        for t in tasks:
            n = int(self.homes[t][place[t]])
            steps.append(Step(f"{self.problem.tasks[t].name} on {names[n]}", float(service.response_ms[t, n])))
        for f, (a, b) in zip(flows, ends, strict=True):
            src, dst = (int(self.homes[e][place[e]]) if e >= 0 else -1 - e for e in (a, b))
            ms, source = self._fastest(f, src, dst)
            steps.append(Step(f"{names[source]} -> {names[dst]}", ms))
        return sum(step.ms for step in steps), tuple(steps)

    def _task(self, t: int) -> Factor:
        return (t,), self.service.response_ms[t, self.homes[t]]

    def _flow(self, f: int, src: int, dst: int) -> Factor:
        sources = self.homes[src].tolist() if src >= 0 else [-1 - src]
        targets = self.homes[dst].tolist() if dst >= 0 else [-1 - dst]
        table = np.array([[self._fastest(f, a, b)[0] for b in targets] for a in sources])
        scope = tuple(end for end in (src, dst) if end >= 0)
        return scope, table.reshape([len(self.homes[end]) for end in scope])

    def _fastest(self, f: int, src: int, dst: int) -> tuple[float, int]:
        """The least ms between two nodes, from any of the flow's sources, and the node where it begins."""
        flow, index = self.problem.flows[f], self.problem.cluster.topology.node_index
        sources = [src] if flow.sources is None else [index[name] for name in flow.sources]
        best = (np.inf, src)
        for source in sources:
            for path in self.routes.between(source, dst):
                width = min((float(self.free[r]) / times for r, times in path.loads), default=np.inf)
                if width >= flow.min:
                    best = min(best, (self.service.flow_ms(f, path, min(flow.max, width)), source))
        return best

    def _places(self, tasks: set[int], factors: list[Factor]) -> dict[int, int] | None:
        """The place of each task, an index into its homes, with the least sum of all factors. None: too large."""
        done: list[tuple[int, tuple[int, ...], FloatArray]] = []
        left = set(tasks)
        while left:
            t = min(left, key=lambda t: (len({u for scope, _ in factors if t in scope for u in scope}), t))
            touching = [factor for factor in factors if t in factor[0]]
            scope = (*sorted({u for each, _ in touching for u in each} - {t}), t)
            if np.prod([float(len(self.homes[u])) for u in scope]) > LARGEST:
                return None
            total = np.zeros([len(self.homes[u]) for u in scope])
            for each, table in touching:
                total = total + _spread(each, table, scope)
            done.append((t, scope[:-1], total))
            factors = [factor for factor in factors if t not in factor[0]]
            if len(scope) > 1:
                factors.append((scope[:-1], total.min(axis=-1)))
            left.remove(t)
        place: dict[int, int] = {}
        for t, others, total in reversed(done):
            place[t] = int(np.argmin(total[tuple(place[u] for u in others)]))
        return place


def _spread(scope: tuple[int, ...], table: FloatArray, over: tuple[int, ...]) -> FloatArray:
    """The table with an axis for each task of ``over``, in that order; of length 1 where it does not depend on it."""
    order = sorted(range(len(scope)), key=lambda i: over.index(scope[i]))
    shape = [table.shape[scope.index(u)] if u in scope else 1 for u in over]
    return np.transpose(table, order).reshape(shape)
