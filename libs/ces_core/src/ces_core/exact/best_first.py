"""Best-first branch and bound on top of the compiled depth-first search.

The open node with the smallest bound is searched depth-first for a while; the unexplored rest of its subtree then
becomes open nodes. No work is lost, and the proven bound rises where it is weakest.
"""

from __future__ import annotations

import heapq
import itertools
import time
from dataclasses import dataclass

import numpy as np

from ces_core.exact.depth_first import BEST, CERTAIN, FOUND, MARGIN, NODES, explore, fresh_search, jump, leave
from ces_core.exact.form import Form, form
from ces_core.exact.tree_state import fresh_state, fresh_tables
from ces_core.model.path import Path
from ces_core.model.problem import Problem
from ces_core.network.cache import paths_for
from ces_core.network.path_table import PathTable
from ces_core.placement.view import ProblemView, problem_view

GAIN = 1e-10
"""Minimum improvement of a plan (in Z, per unit of weights); the bound allows for it."""
LEVELS = 200
"""Levels opened depth-first before the best open node is chosen again; more when many nodes are open."""


MAX_TIES = 1024
"""Maximum number of equally short paths per pair of nodes where the usual table had to drop some..."""
MAX_COSTS = 8_000_000
"""... unless that gives more than this many pairs of a flow and a path."""


@dataclass(frozen=True)
class Found:
    """A plan by indices, and its Z = L + 1 - D."""

    cost: float
    assignment: tuple[int, ...]
    paths: tuple[Path, ...]
    bandwidth: tuple[float, ...]


@dataclass(frozen=True)
class Outcome:
    """Result of a proof. ``floor``: no plan has a smaller Z (infinite: there is no plan). ``complete``: the search
    ended by itself.

    ``all_paths``: both cover all paths that flows may take, not only those in the path table.
    """

    found: Found | None
    floor: float
    complete: bool
    all_paths: bool
    levels: int


def prove(problem: Problem, known: float | None, deadline: float, *, first: bool = False) -> Outcome:
    """Searches for a plan with a Z below ``known``; ``first``: stops at any plan.

    ``deadline`` is a time of ``time.perf_counter``.
    """
    view, routes = _with_all_paths(problem)
    shape = form(view)
    search = _Search(shape)
    numbers = search.arrays.numbers
    scale = max(1.0, float(shape.weights.sum()))
    numbers[MARGIN] = GAIN * scale
    numbers[BEST] = _cost_upper_bound(shape) if known is None else known
    open_nodes: list[tuple[float, int, tuple[int, ...]]] = [(-np.inf, 0, ())]
    ticket = itertools.count(1)
    while open_nodes:
        bound, _, choices = heapq.heappop(open_nodes)
        if bound >= numbers[BEST] - numbers[MARGIN]:
            open_nodes.clear()
            break
        for below, rest in search.subtree(choices, bound, max(LEVELS, len(open_nodes))):
            heapq.heappush(open_nodes, (below, next(ticket), rest))
        if time.perf_counter() > deadline or (first and search.arrays.counts[FOUND]):
            break
    found = search.found(view, routes)
    floor = min(numbers[BEST] - 2 * numbers[MARGIN], float(numbers[CERTAIN]))
    if open_nodes:
        floor = min(floor, open_nodes[0][0])
    elif found is None and known is None:
        floor = np.inf
    all_paths = not problem.flows or not routes.truncated(view.nodes)
    return Outcome(found, floor, not open_nodes, all_paths, int(search.arrays.counts[NODES]))


def _with_all_paths(problem: Problem) -> tuple[ProblemView, PathTable]:
    """The problem as arrays, with every equally short path if their number permits."""
    view, routes = problem_view(problem), paths_for(problem)
    if not problem.flows or not routes.truncated(view.nodes):
        return view, routes
    wider = routes.wider(MAX_TIES)
    paths = wider.flat(view.nodes)
    if (len(paths.path_first) - 1) * len(problem.flows) > MAX_COSTS:
        return view, routes
    return view._replace(
        pair_first=paths.pair_first,
        path_first=paths.path_first,
        path_resource=paths.resource,
        path_times=paths.times,
    ), wider


class _Search:
    """The compiled search and its arrays."""

    def __init__(self, shape: Form) -> None:
        self.form = shape
        self.state = fresh_state(shape)
        self.tables = fresh_tables(shape)
        self.arrays = fresh_search(shape)

    def subtree(self, choices: tuple[int, ...], bound: float, levels: int) -> list[tuple[float, tuple[int, ...]]]:
        """Searches below ``choices`` for this many levels; returns the remaining open nodes with their bounds."""
        base, arrays = len(choices), self.arrays
        jump(self.form, self.state, arrays, np.array(choices, dtype=np.int64))
        level = explore(self.form, self.state, self.tables, arrays, base, base, levels)
        if level < 0:
            leave(self.form, self.state, arrays, base)
            return []
        left: list[tuple[float, tuple[int, ...]]] = []
        cut, here = arrays.numbers[BEST] - arrays.numbers[MARGIN], list(choices)
        for at in range(base, level):
            taken, size = int(arrays.at[at]), int(arrays.size[at])
            for choice, below in zip(
                arrays.choice[at, taken + 1 : size].tolist(), arrays.bound[at, taken + 1 : size].tolist(), strict=True
            ):
                if below >= cut:
                    break
                left.append((max(bound, below), (*here, choice)))
            here.append(int(arrays.choice[at, taken]))
            bound = max(bound, float(arrays.bound[at, taken]))
        left.append((bound, tuple(here)))
        leave(self.form, self.state, arrays, level)
        return left

    def found(self, view: ProblemView, routes: PathTable) -> Found | None:
        """The best plan found, if any."""
        arrays = self.arrays
        if not arrays.counts[FOUND]:
            return None
        local = np.empty(len(self.form.order), dtype=np.int64)
        local[self.form.order] = arrays.best_nodes
        assignment = view.nodes[local].tolist()

        def end(at: int) -> int:
            return int(local[at]) if at >= 0 else -1 - at

        ends = [(end(a), end(b)) for a, b in zip(view.flow_src.tolist(), view.flow_dst.tolist(), strict=True)]
        first = [int(view.pair_first[a * len(view.nodes) + b]) for a, b in ends]
        paths = [
            routes.between(int(view.nodes[a]), int(view.nodes[b]))[q - start]
            for (a, b), q, start in zip(ends, arrays.best_paths.tolist(), first, strict=True)
        ]
        return Found(float(arrays.numbers[BEST]), tuple(assignment), tuple(paths), tuple(arrays.best_rates.tolist()))


def _cost_upper_bound(shape: Form) -> float:
    """A number above any plan's Z, as a deviation is at most the root of the mean square."""
    nodes = np.sqrt(shape.node_squares) + shape.more.max(axis=2, initial=0.0).sum(axis=1)
    total = float((shape.weights[:2] * nodes / np.sqrt(shape.node_count)).sum())
    rates = np.minimum(shape.high[:, None], shape.width[None, :]) * np.sqrt(shape.kappa2)
    links = float(np.sqrt(shape.link_squares) + rates.max(axis=1, initial=0.0).sum())
    total += float(shape.weights[2]) * links / float(np.sqrt(shape.link_count))
    return 1.0 + 1.001 * total + 1e-6
