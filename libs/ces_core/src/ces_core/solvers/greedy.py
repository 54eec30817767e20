"""Greedy placement with a look ahead, tried over several orders of the tasks.

Each dive takes the tasks in one order and puts each on the node that leaves the best composite, given where its
neighbours already are and what the equally short paths between them have left; it steps back where a task has no
place. The first orders are the telling ones (talkative first, large first); later ones put what got stuck first, with
some chance, and are used until there are a few plans to compare. The plan with the best composite is kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from ces_core.bandwidth import Allocation, complete
from ces_core.diagnosis import SearchTrace, explain, obstacle
from ces_core.objective import evaluate
from ces_core.plan import Metrics, Plan, Result
from ces_core.problem import Problem
from ces_core.solvers.placing import Placing

ORDERS = 3
"""Orders that the problem suggests."""
PLANS = 3
"""So many plans are compared, where that many are found without digging."""
MORE_ORDERS = 6
"""Orders drawn by the seed until there are enough plans."""
SHORT, LONG = 8, 100
"""Placements a dive may try per task before it gives its order up. Short dives come first: another order often finds
at once what this one would have to dig for. Long ones, for the last orders, mostly end with a place or a proof."""
LONG_ORDERS = 3
"""How many of the orders get a long dive."""
LOOK_CLOSELY = 16
"""Nodes whose bandwidth is looked at at once; the others wait until these are refused."""

Found = tuple[Plan, Metrics]


class Greedy:
    """See the module."""

    name = "greedy"
    summary = "feasible greedy placement, bandwidth filled as far as capacities allow"

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        deadline = None if time_limit_s is None else time.perf_counter() + time_limit_s
        hindrance = obstacle(problem)
        if hindrance is not None:
            return Result(self.name, SearchTrace.of(problem).considered, reason=hindrance)
        found, trace = search(problem, seed, deadline)
        if found is None:
            reason = explain(problem, trace, lambda other: search(other, seed, deadline))
            return Result(self.name, trace.considered, reason=reason)
        plan, metrics = found
        return Result(self.name, trace.considered, plan, metrics)


GREEDY = Greedy()


def search(problem: Problem, seed: int, deadline: float | None = None) -> tuple[Found | None, SearchTrace]:
    """The best plan over the orders, if any, and what the search saw."""
    placing = Placing(problem)
    trace = SearchTrace.of(problem, placing)
    if not placing.fixed_ok:
        return None, trace
    best: tuple[Metrics, Sequence[int], Allocation] | None = None
    tried: set[tuple[int, ...]] = set()
    plans = 0
    for number, order in enumerate(_orders(problem, placing, seed)):
        if best is not None and (plans >= PLANS or number >= ORDERS + MORE_ORDERS - LONG_ORDERS):
            break
        if best is not None and order in tried:
            continue
        tried.add(order)
        patience = LONG if number >= ORDERS + MORE_ORDERS - LONG_ORDERS else SHORT
        ended = _dive(placing, order, patience * len(order), deadline)
        if ended:
            plans += 1
            assignment = list(placing.node_of)
            allocation = complete(problem, assignment)
            if allocation is not None:
                metrics = evaluate(problem, assignment, allocation.paths, allocation.bandwidth)
                if best is None or metrics.composite > best[0].composite + 1e-12:
                    best = metrics, assignment, allocation
                    trace = SearchTrace.of(problem, placing)
            for task in reversed(order):
                placing.undo(task)
        elif best is None:
            trace = SearchTrace.of(problem, placing, complete=ended is None and not placing.chose)
            if ended is None:
                break  # every placement was looked at; another order sees the same ones
        if deadline is not None and time.perf_counter() > deadline:
            break
    if best is None:
        return None, trace
    metrics, placed, allocation = best
    return (Plan.of(problem, placed, allocation.paths, allocation.bandwidth), metrics), trace


def _dive(placing: Placing, order: Sequence[int], steps: int, deadline: float | None) -> bool | None:
    """True: all tasks are placed. False: gave up, nothing is placed. None: no placement is left, nothing is placed."""
    options = [_candidates(placing, order[0])]
    while options:
        task = order[len(options) - 1]
        if placing.node_of[task] >= 0:
            placing.undo(task)
        for node in options[-1]:
            if steps == 0 or (deadline is not None and time.perf_counter() > deadline):
                for earlier in reversed(order[: len(options) - 1]):
                    placing.undo(earlier)
                return False
            steps -= 1
            if placing.place(task, node):
                break
        else:
            placing.stuck[task] += 1
            options.pop()
            continue
        if len(options) == len(order):
            return True
        options.append(_candidates(placing, order[len(options)]))
    return None


def _candidates(placing: Placing, task: int) -> Iterator[int]:
    """Nodes for ``task``, best first within each batch that is looked at closely."""
    nodes, values = placing.rough_order(task)
    for start in range(0, len(nodes), LOOK_CLOSELY):
        batch = zip(
            nodes[start : start + LOOK_CLOSELY].tolist(), values[start : start + LOOK_CLOSELY].tolist(), strict=True
        )
        scored: list[tuple[float, int]] = []
        for rank, (node, value) in enumerate(batch):
            links = placing.try_links(task, node)
            if links is not None:
                scored.append((-(value + links), start + rank))
        scored.sort()
        for _, rank in scored:
            yield int(nodes[rank])


def _orders(problem: Problem, placing: Placing, seed: int) -> Iterator[tuple[int, ...]]:
    tasks = range(len(problem.tasks))
    size = _relative_sizes(problem)
    talk = [sum(placing.low[f] for f in placing.flows_of[t]) for t in tasks]
    most = max(talk) or 1.0
    both = [size[t] + talk[t] / most for t in tasks]
    yield _connected(placing, both)
    yield _connected(placing, size)
    yield tuple(sorted(tasks, key=lambda t: (-both[t], t)))
    rng = np.random.default_rng(seed)
    for _ in range(MORE_ORDERS):
        stuck = max(placing.stuck) or 1
        noise = rng.random(len(tasks))
        yield _connected(placing, [both[t] * noise[t] + placing.stuck[t] / stuck for t in tasks])


def _relative_sizes(problem: Problem) -> list[float]:
    """Each task's largest share of what is free, over the resources."""
    free = problem.cluster.node_free.max(axis=1)
    shares = np.divide(problem.demand, free, out=np.zeros_like(problem.demand), where=free > 0)
    return [float(share) for share in shares.max(axis=1)]


def _connected(placing: Placing, weight: Sequence[float]) -> tuple[int, ...]:
    """The heaviest task first, then always one that talks to those before it where there is one, the most bound by
    minimum bandwidth and weight first."""
    bound = [0.0] * len(weight)
    order: list[int] = []
    left = set(range(len(weight)))
    most = max(placing.low, default=0.0) or 1.0
    while left:
        task = max(left, key=lambda t: (bound[t] > 0, bound[t] + weight[t], -t))
        order.append(task)
        left.remove(task)
        for f in placing.flows_of[task]:
            for end in (placing.src[f], placing.dst[f]):
                if end in left:
                    bound[end] += placing.low[f] / most + 1e-9
    return tuple(order)
