"""Bandwidth and paths for tasks that have their nodes.

The default maximises the composite: satisfaction against the imbalance of the links. :mod:`ces_core.linear` gives the
same by linear programming, slower and to the last digit; :mod:`ces_core.fair` shares max-min fairly instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ces_core.candidates import all_if_few
from ces_core.kernels.compact import Compact, compact
from ces_core.kernels.fill import fill_work
from ces_core.kernels.improve import better_paths
from ces_core.kernels.state import State, install, new_state
from ces_core.paths import Path
from ces_core.problem import Problem


@dataclass(frozen=True)
class Allocation:
    """A path and a rate for every flow, in the order of the problem."""

    paths: tuple[Path, ...]
    bandwidth: tuple[float, ...]


def complete(problem: Problem, assignment: Sequence[int]) -> Allocation | None:
    """Paths and rates for tasks that have their nodes (``assignment[t]``: an index in the cluster).

    Paths are chosen one flow after the other, then changed one at a time while that raises the composite. None where
    no choice of paths was found that carries every minimum. Whether the tasks fit on their nodes is not looked at.
    """
    nodes = np.asarray(assignment, dtype=np.int64)
    few = all_if_few(problem)  # the same for every placement: their paths are known from the first time on
    view = compact(problem, np.unique(nodes) if few is None else np.union1d(few, nodes))
    # Where the tasks fit is the caller's matter: the room on nodes must not keep flows from their paths.
    view = view._replace(free=view.free + problem.demand.sum(axis=0)[:, None])
    state, work = new_state(view), fill_work(view)
    install(view, work, state, np.searchsorted(view.nodes, nodes))
    better_paths(view, work, state)
    return allocation_of(problem, view, state) if state.fits[0] else None


def allocation_of(problem: Problem, view: Compact, state: State) -> Allocation:
    """The paths and rates that a state holds."""

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
