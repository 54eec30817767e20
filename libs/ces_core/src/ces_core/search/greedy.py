"""Greedy construction with lookahead and backtracking, repeated over several task orders.

Each construction takes the tasks in one order and puts each on the node with the best composite, given the nodes of its
neighbours and the residual capacity of the shortest paths between them; it backtracks where a task fits nowhere. The
first orders are deterministic (most traffic first, largest demand first); later ones favour tasks that got stuck, with
random weights, and are used until there are a few plans to compare. The plan with the best composite is kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from ces_core.bandwidth.composite import Allocation, complete
from ces_core.model.objective import evaluate
from ces_core.model.plan import Metrics, Plan, Result
from ces_core.model.problem import Problem
from ces_core.search.diagnosis import SearchTrace, explain, obstacle
from ces_core.search.greedy_state import GreedyState
from ces_core.solver import refuse_goals

ORDERS = 3
"""Deterministic orders derived from the problem."""
PLANS = 3
"""Number of plans compared, unless they are hard to find."""
MORE_ORDERS = 6
"""Additional random orders, used until there are enough plans."""
SHORT, LONG = 8, 100
"""Maximum placements per task in one construction. Short attempts come first, because another order often succeeds at
once where this one would backtrack for long. Long attempts, for the last orders, mostly end with a plan or a proof."""
LONG_ORDERS = 3
"""Number of orders with a long attempt."""
STRAIGHT = 2
"""Placements per task that are tried whatever the time: enough for a first plan where nothing is in its way. A machine
that stands still for some milliseconds must not make a small job one without a place."""
LOOK_CLOSELY = 16
"""Nodes whose bandwidth is examined at once; the others follow if these are refused."""

Found = tuple[Plan, Metrics]


class Patience:
    """When to stop: not before ``least`` placements were tried, then at the deadline, a time of
    ``time.perf_counter``."""

    def __init__(self, deadline: float | None, least: int = 0) -> None:
        self._deadline, self._least = deadline, least

    def spend(self) -> None:
        self._least -= 1

    def over(self) -> bool:
        return self._deadline is not None and self._least <= 0 and time.perf_counter() > self._deadline


class Greedy:
    """Solver of this module."""

    name = "greedy"
    summary = "feasible greedy placement, bandwidth filled as far as capacities allow"

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        refuse_goals(self.name, problem)
        deadline = None if time_limit_s is None else time.perf_counter() + time_limit_s
        hindrance = obstacle(problem)
        if hindrance is not None:
            return Result(self.name, SearchTrace.of(problem).considered, reason=hindrance)
        found, trace = search(problem, seed, deadline, STRAIGHT * len(problem.tasks))
        if found is None:
            reason = explain(problem, trace, lambda other: search(other, seed, deadline))
            return Result(self.name, trace.considered, reason=reason)
        plan, metrics = found
        return Result(self.name, trace.considered, plan, metrics)


GREEDY = Greedy()


def search(
    problem: Problem, seed: int, deadline: float | None = None, least: int = 0
) -> tuple[Found | None, SearchTrace]:
    """The best plan over all orders, if any, and the trace of the search. ``least``: placements tried even after the
    deadline."""
    patience = Patience(deadline, least)
    state = GreedyState(problem)
    trace = SearchTrace.of(problem, state)
    if not state.fixed_ok:
        return None, trace
    best: tuple[Metrics, Sequence[int], Allocation] | None = None
    tried: set[tuple[int, ...]] = set()
    plans = 0
    for number, order in enumerate(_orders(problem, state, seed)):
        if best is not None and (plans >= PLANS or number >= ORDERS + MORE_ORDERS - LONG_ORDERS):
            break
        if best is not None and order in tried:
            continue
        tried.add(order)
        effort = LONG if number >= ORDERS + MORE_ORDERS - LONG_ORDERS else SHORT
        ended = _construct(state, order, effort * len(order), patience)
        if ended:
            plans += 1
            assignment = list(state.node_of)
            allocation = complete(problem, assignment)
            if allocation is not None:
                metrics = evaluate(problem, assignment, allocation.paths, allocation.bandwidth)
                if best is None or metrics.composite > best[0].composite + 1e-12:
                    best = metrics, assignment, allocation
                    trace = SearchTrace.of(problem, state)
            for task in reversed(order):
                state.undo(task)
        elif best is None:
            trace = SearchTrace.of(problem, state, complete=ended is None and not state.chose)
            if ended is None:
                break  # every placement was tried; another order would repeat them
        if patience.over():
            break
    if best is None:
        return None, trace
    metrics, placed, allocation = best
    return (Plan.of(problem, placed, allocation.paths, allocation.bandwidth), metrics), trace


def _construct(state: GreedyState, order: Sequence[int], steps: int, patience: Patience) -> bool | None:
    """True: all tasks are placed. False: gave up. None: the search space is exhausted. In the last two cases nothing is
    placed."""
    options = [_candidates(state, order[0])]
    while options:
        task = order[len(options) - 1]
        if state.node_of[task] >= 0:
            state.undo(task)
        for node in options[-1]:
            if steps == 0 or patience.over():
                for earlier in reversed(order[: len(options) - 1]):
                    state.undo(earlier)
                return False
            steps -= 1
            patience.spend()
            if state.place(task, node):
                break
        else:
            state.stuck[task] += 1
            options.pop()
            continue
        if len(options) == len(order):
            return True
        options.append(_candidates(state, order[len(options)]))
    return None


def _candidates(state: GreedyState, task: int) -> Iterator[int]:
    """Nodes for ``task``, best first within each batch that is examined closely."""
    nodes, values = state.rough_order(task)
    for start in range(0, len(nodes), LOOK_CLOSELY):
        batch = zip(
            nodes[start : start + LOOK_CLOSELY].tolist(), values[start : start + LOOK_CLOSELY].tolist(), strict=True
        )
        scored: list[tuple[float, int]] = []
        for rank, (node, value) in enumerate(batch):
            links = state.try_links(task, node)
            if links is not None:
                scored.append((-(value + links), start + rank))
        scored.sort()
        for _, rank in scored:
            yield int(nodes[rank])


def _orders(problem: Problem, state: GreedyState, seed: int) -> Iterator[tuple[int, ...]]:
    tasks = range(len(problem.tasks))
    size = _relative_sizes(problem)
    talk = [sum(state.low[f] for f in state.flows_of[t]) for t in tasks]
    largest = max(talk) or 1.0
    both = [size[t] + talk[t] / largest for t in tasks]
    yield _connected(state, both)
    yield _connected(state, size)
    yield tuple(sorted(tasks, key=lambda t: (-both[t], t)))
    rng = np.random.default_rng(seed)
    for _ in range(MORE_ORDERS):
        stuck = max(state.stuck) or 1
        noise = rng.random(len(tasks))
        yield _connected(state, [both[t] * noise[t] + state.stuck[t] / stuck for t in tasks])


def _relative_sizes(problem: Problem) -> list[float]:
    """Each task's largest share of the free capacity over all resources."""
    free = problem.cluster.node_free.max(axis=1)
    shares = np.divide(problem.demand, free, out=np.zeros_like(problem.demand), where=free > 0)
    return [float(share) for share in shares.max(axis=1)]


def _connected(state: GreedyState, weight: Sequence[float]) -> tuple[int, ...]:
    """Tasks ordered by weight, preferring tasks with flows to earlier ones: first the most bound by minimum bandwidth
    and weight."""
    bound = [0.0] * len(weight)
    order: list[int] = []
    left = set(range(len(weight)))
    largest = max(state.low, default=0.0) or 1.0
    while left:
        task = max(left, key=lambda t: (bound[t] > 0, bound[t] + weight[t], -t))
        order.append(task)
        left.remove(task)
        for f in state.flows_of[task]:
            for end in (state.src[f], state.dst[f]):
                if end in left:
                    bound[end] += state.low[f] / largest + 1e-9
    return tuple(order)
