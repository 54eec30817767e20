"""Random instances of the regimes that the benchmarks speak of, in the instance format of ``ces solve``.

The figures are those of the thesis's simulation: node capacities U[50, 100] of which 10-50 % is used, wires with
probability 0.3 and a capacity U[100, 1000] for each direction, tasks asking U[10, 50], flows with probability 0.4,
minimum U[10, 50] and maximum U[50, 100]. ``tight`` and ``scarce`` scale the link capacities down.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

REGIMES = {"thesis": 1.0, "tight": 0.3, "scarce": 0.15}
"""Regime -> factor on link capacities."""


def random_instance(
    regime: str = "thesis",
    seed: int = 0,
    *,
    nodes: int = 10,
    tasks: int | None = None,
    link_probability: float = 0.3,
    flow_probability: float = 0.4,
) -> dict[str, Any]:
    """An instance of a regime; the same arguments give the same instance. ``tasks``: 3-8 at random where None.

    Networks and jobs that come out in pieces are joined at random. Raises KeyError for an unknown regime.
    """
    scale = REGIMES[regime]
    rng = np.random.default_rng(seed)

    def uniform(low: float, high: float) -> float:
        return round(float(rng.uniform(low, high)), 3)

    names = [f"n{i}" for i in range(nodes)]
    devices = []
    for name in names:
        cpu, memory = uniform(50, 100), uniform(50, 100)
        devices.append(
            {
                "name": name,
                "cpu": cpu,
                "memory": memory,
                "cpu_used": round(cpu * float(rng.uniform(0.1, 0.5)), 3),
                "memory_used": round(memory * float(rng.uniform(0.1, 0.5)), 3),
            }
        )
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    draws = rng.random((nodes, nodes))
    graph.add_edges_from((i, j) for i in range(nodes) for j in range(i + 1, nodes) if draws[i, j] < link_probability)
    _join_pieces(graph, rng)
    links = [
        {"src": names[a], "dst": names[b], "bandwidth": round(uniform(100, 1000) * scale, 3)}
        for i in range(nodes)
        for a, b in ((i, j) for j in sorted(graph[i]))
    ]
    count = tasks if tasks is not None else int(rng.integers(3, 9))
    asked = [{"name": f"t{i}", "cpu": uniform(10, 50), "memory": uniform(10, 50)} for i in range(count)]
    talk = nx.gnp_random_graph(count, flow_probability, seed=int(rng.integers(2**31)))
    _join_pieces(talk, rng)
    flows = [
        {"src": f"t{i}", "dst": f"t{j}", "min": uniform(10, 50), "max": uniform(50, 100)}
        for i, j in sorted((min(edge), max(edge)) for edge in talk.edges)
    ]
    job = {"name": f"{regime}-{seed}", "tasks": asked, "flows": flows}
    return {"nodes": devices, "links": links, "job": job}


def _join_pieces(graph: nx.Graph[int], rng: np.random.Generator) -> None:
    pieces = [sorted(piece) for piece in nx.connected_components(graph)]
    for one, other in pairwise(pieces):
        graph.add_edge(int(rng.choice(one)), int(rng.choice(other)))
