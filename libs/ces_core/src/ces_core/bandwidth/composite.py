"""Paths and rates for tasks whose nodes are fixed, chosen to maximise the composite.

They trade satisfaction against the imbalance of the links. :mod:`ces_core.bandwidth.linear` computes optimal rates by
linear programming, more slowly; :mod:`ces_core.bandwidth.max_min` shares bandwidth max-min fairly instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ces_core.model.path import Path
from ces_core.model.problem import Problem
from ces_core.placement.candidates import all_if_few
from ces_core.placement.fill import fill_work
from ces_core.placement.path_choice import better_paths
from ces_core.placement.state import State, new_state
from ces_core.placement.trial import install
from ces_core.placement.view import ProblemView, problem_view


@dataclass(frozen=True)
class Allocation:
    """A path and a rate for every flow, in the order of the problem."""

    paths: tuple[Path, ...]
    bandwidth: tuple[float, ...]


def complete(problem: Problem, assignment: Sequence[int]) -> Allocation | None:
    """Paths and rates for a placement (``assignment[t]``: an index in the cluster).

    Paths are chosen flow by flow, then changed one at a time while that raises the composite. None where no choice of
    paths was found that carries every minimum. Does not check whether the tasks fit on their nodes.
    """
    nodes = np.asarray(assignment, dtype=np.int64)
    few = all_if_few(problem)  # the same for every placement, so their paths stay cached
    view = problem_view(problem, np.unique(nodes) if few is None else np.union1d(few, nodes))
    # Whether tasks fit is the caller's concern: node capacity must not affect paths.
    view = view._replace(free=view.free + problem.demand.sum(axis=0)[:, None])
    state, work = new_state(view), fill_work(view)
    install(view, work, state, np.searchsorted(view.nodes, nodes))
    better_paths(view, work, state)
    return allocation_of(problem, view, state) if state.fits[0] else None


def allocation_of(problem: Problem, view: ProblemView, state: State) -> Allocation:
    """The paths and rates of a state."""

    ahead = problem.cluster.topology.link_dst
    paths = []
    for src, q in zip(view.flow_src.tolist(), state.path.tolist(), strict=True):
        first, last = view.path_first[q : q + 2].tolist()
        resource = view.path_resource[first:last].tolist()
        via = tuple(r for r in resource if r < len(ahead))
        start = int(view.nodes[state.node_of[src] if src >= 0 else -1 - src])
        loads = tuple(zip(resource, view.path_times[first:last].astype(int).tolist(), strict=True))
        paths.append(Path((start, *ahead[list(via)].tolist()), via, loads))
    return Allocation(tuple(paths), tuple(state.rates.tolist()))
