"""The graph and path tables of each topology, cached as long as the topology itself."""

from __future__ import annotations

import numpy as np

from ces_core.model.lru import LruCache
from ces_core.model.problem import Problem
from ces_core.model.topology import Topology
from ces_core.network.graph import Network
from ces_core.network.path_table import PathTable

KEPT_DELAYS = 4
"""Tables by delay of one topology that are kept: delays are measured, and change more often than links."""


def network_of(topology: Topology) -> Network:
    """The topology's graph. Made on first use, with hop counts of its predecessor that still hold."""
    found: Network | None = topology.derived.get(Network)
    if found is None:
        found = Network(len(topology.nodes), topology.link_src, topology.link_dst, topology.link_medium)
        earlier = _known_before(topology)
        if earlier is not None:
            found.learn_from(earlier)
        topology.derived[Network] = found
    return found


def paths_of(topology: Topology, k: int | None = None) -> PathTable:
    """All hop-shortest paths (``k`` None) or the ``k`` shortest simple paths, computed on demand."""
    found: PathTable | None = topology.derived.get((PathTable, k))
    if found is None:
        found = PathTable(network_of(topology), k=k)
        topology.derived[PathTable, k] = found
    return found


def paths_for(problem: Problem) -> PathTable:
    """The paths that the problem's flows may take."""
    topology, k = problem.cluster.topology, problem.paths
    if problem.path_metric == "hops" or k is None:
        return paths_of(topology, k)
    from ces_core.network.least_delay import LeastDelayPaths  # with networkx, which takes long to import

    profile = problem.cluster.profile
    delays = np.zeros(len(topology.link_src)) if profile is None else profile.delay_ms
    kept: LruCache[tuple[int, bytes], LeastDelayPaths]
    kept = topology.derived.setdefault(LeastDelayPaths, LruCache(KEPT_DELAYS))
    table = kept.get((k, delays.tobytes()))
    if table is None:
        table = LeastDelayPaths(network_of(topology), topology, delays, k)
        kept.put((k, delays.tobytes()), table, 1)
    return table


def _known_before(topology: Topology) -> Network | None:
    """The graph of the nearest predecessor that has one."""
    earlier = topology.predecessor() if topology.predecessor is not None else None
    while earlier is not None:
        found: Network | None = earlier.derived.get(Network)
        if found is not None:
            return found
        earlier = earlier.predecessor() if earlier.predecessor is not None else None
    return None
