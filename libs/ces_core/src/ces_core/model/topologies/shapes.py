"""Layouts of networks: their parts, regular shapes, and random wires."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

import networkx as nx
import numpy as np

LINK_PROBABILITY = 0.3
"""For each pair of nodes of a small random network, as in the thesis's simulation."""
SMALL = 100
"""Larger random networks have a fixed average degree: that probability would give 30 million links at 10,000 nodes."""
DEGREE = 8
"""The average number of neighbours in a larger random network."""

Wires = dict[tuple[int, int], float | None]
"""Directed links between node indices, with their speeds (Mbit/s; None: unknown, chosen by the caller)."""


@dataclass(frozen=True)
class Layout:
    """Names and wires; the caller adds missing capacities."""

    nodes: tuple[str, ...]
    wires: Wires | None  # None: drawn at random
    switches: frozenset[int] = frozenset()
    """Nodes that only forward traffic."""
    left_out: tuple[str, ...] = ()
    """Nodes of a file that are not connected to the rest."""


def both_ways(pairs: list[tuple[int, int]]) -> Wires:
    """Wires in both directions, in the order of their ends."""
    return dict.fromkeys(sorted({*pairs, *((b, a) for a, b in pairs)}))


def random(nodes: int) -> Layout:
    """Nodes only; :func:`random_wires` draws the wires."""
    return Layout(_names(nodes), None)


def grid(nodes: int) -> Layout:
    """A grid as square as possible, its last row cut short; wires to the right and downwards."""
    width = int(np.ceil(np.sqrt(nodes)))
    right = [(i, i + 1) for i in range(nodes - 1) if (i + 1) % width]
    return Layout(_names(nodes), both_ways(right + [(i, i + width) for i in range(nodes - width)]))


def ring(nodes: int) -> Layout:
    closing = [(nodes - 1, 0)] if nodes > 2 else []
    return Layout(_names(nodes), both_ways([*pairwise(range(nodes)), *closing]))


def fat_tree(nodes: int) -> Layout:
    """The smallest k-ary fat-tree (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008) that holds ``nodes`` devices, spread
    evenly over its edge switches; the switches are additional nodes."""
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
    """Wires between random pairs of nodes, each with ``link_probability``. None means 0.3 up to 100 nodes; beyond, 4
    wires per node, an average degree of 8. Disconnected parts are joined at random."""
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
    """Add random edges until the graph is connected."""
    pieces = [sorted(piece) for piece in nx.connected_components(graph)]
    for one, other in pairwise(pieces):
        graph.add_edge(int(rng.choice(one)), int(rng.choice(other)))


def _names(nodes: int) -> tuple[str, ...]:
    return tuple(f"n{i}" for i in range(nodes))
