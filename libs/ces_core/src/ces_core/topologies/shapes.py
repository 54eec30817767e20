"""Regular networks, and random wires."""

from __future__ import annotations

from itertools import pairwise, product

import networkx as nx
import numpy as np

from ces_core.topologies.parts import Layout, Wires, both_ways

LINK_PROBABILITY = 0.3
"""For each pair of nodes of a small random network, as in the thesis's simulation."""
SMALL = 100
"""Beyond so many nodes that would be senseless: 30 million links for 10,000 nodes."""
DEGREE = 8
"""The average number of neighbours in a larger random network."""


def random(nodes: int) -> Layout:
    """Wires to be drawn by :func:`random_wires`."""
    return Layout(_names(nodes), None)


def grid(nodes: int) -> Layout:
    """As square as it gets, the last row as long as nodes are left; wires to the right and downwards."""
    width = int(np.ceil(np.sqrt(nodes)))
    right = [(i, i + 1) for i in range(nodes - 1) if (i + 1) % width]
    return Layout(_names(nodes), both_ways(right + [(i, i + width) for i in range(nodes - width)]))


def ring(nodes: int) -> Layout:
    closing = [(nodes - 1, 0)] if nodes > 2 else []
    return Layout(_names(nodes), both_ways([*pairwise(range(nodes)), *closing]))


def fat_tree(nodes: int) -> Layout:
    """The smallest k-ary fat-tree (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008) with room for ``nodes`` devices, which
    are spread evenly over its edge switches; the switches come on top."""
    k = 2
    while k**3 // 4 < nodes:
        k += 2
    half = k // 2
    edge = [nodes + i for i in range(k * half)]
    upper = [edge[-1] + 1 + i for i in range(k * half)]  # aggregation: ``half`` in each pod, like the edge
    core = [upper[-1] + 1 + i for i in range(half * half)]
    pairs = [(host, edge[host % len(edge)]) for host in range(nodes)]
    for pod, i, j in product(range(k), range(half), range(half)):
        pairs.append((edge[pod * half + i], upper[pod * half + j]))
        pairs.append((upper[pod * half + i], core[i * half + j]))
    names = [f"{kind}{i}" for kind, of in (("edge", edge), ("agg", upper), ("core", core)) for i in range(len(of))]
    return Layout((*_names(nodes), *names), both_ways(pairs), switches=frozenset((*edge, *upper, *core)))


def random_wires(nodes: int, link_probability: float | None, rng: np.random.Generator) -> Wires:
    """Each pair of nodes is wired with ``link_probability``; where None, with 0.3 up to 100 nodes, and beyond that
    there are 4 wires per node, an average degree of 8. Pieces are joined at random."""
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    if nodes <= SMALL:
        draws = rng.random((nodes, nodes))
        likely = LINK_PROBABILITY if link_probability is None else link_probability
        graph.add_edges_from((i, j) for i in range(nodes) for j in range(i + 1, nodes) if draws[i, j] < likely)
    else:
        pairs = nodes * (nodes - 1) // 2
        count = nodes * DEGREE // 2 if link_probability is None else rng.binomial(pairs, link_probability)
        drawn = np.sort(rng.choice(pairs, size=count, replace=False))
        # Pair p is (i, j) with p = j (j - 1) / 2 + i and i < j.
        j = ((1 + np.sqrt(1 + 8 * drawn)) // 2).astype(np.int64)
        graph.add_edges_from(zip((drawn - j * (j - 1) // 2).tolist(), j.tolist(), strict=True))
    join_pieces(graph, rng)
    return both_ways(list(graph.edges))


def join_pieces(graph: nx.Graph[int], rng: np.random.Generator) -> None:
    """Adds edges at random until everything is connected."""
    pieces = [sorted(piece) for piece in nx.connected_components(graph)]
    for one, other in pairwise(pieces):
        graph.add_edge(int(rng.choice(one)), int(rng.choice(other)))


def _names(nodes: int) -> tuple[str, ...]:
    return tuple(f"n{i}" for i in range(nodes))
