"""Random instances of the benchmarks' regimes, in the instance format of ``ces solve``.

The figures are those of the thesis's simulation: node capacities U[50, 100] of which 10-50 % is used, wires with
probability 0.3 and a capacity U[100, 1000] for each direction, tasks asking U[10, 50], flows with probability 0.4,
minimum U[10, 50] and maximum U[50, 100]. ``tight`` and ``scarce`` scale the link capacities down.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from ces_core.model.errors import ProblemError
from ces_core.model.topologies import layout_of, random_wires
from ces_core.model.topologies.shapes import join_pieces

REGIMES = {"thesis": 1.0, "tight": 0.3, "scarce": 0.15}
"""Regime -> factor on link capacities."""


def random_instance(
    regime: str = "thesis",
    seed: int = 0,
    *,
    nodes: int | None = None,
    tasks: int | None = None,
    topology: str = "random",
    link_probability: float | None = None,
    flow_probability: float = 0.4,
) -> dict[str, Any]:
    """A random instance of a regime, determined by the arguments. ``tasks``: 3-8 at random if None.

    ``topology`` is ``random``, ``grid``, ``ring`` or ``fat-tree`` with this number of ``nodes`` (10 if None; a
    fat-tree's switches come on top), or a GraphML file with its own nodes and link speeds (in Mbit/s, times the
    regime's factor). Nodes of the file that are not connected to the rest are listed in the instance as ``left_out``.
    ``link_probability`` is for ``random``: None means 0.3 up to 100 nodes, and an average degree of 8 in larger
    networks. Disconnected networks and jobs are joined at random.

    Raises ProblemError for an unknown regime or topology.
    """
    if regime not in REGIMES:
        raise ProblemError("regime", f"must be {', '.join(REGIMES)}, not {regime!r}")
    scale = REGIMES[regime]
    layout = layout_of(topology, nodes)
    rng = np.random.default_rng(seed)

    def uniform(low: float, high: float) -> float:
        return round(float(rng.uniform(low, high)), 3)

    devices: list[dict[str, Any]] = []
    for i, name in enumerate(layout.nodes):
        if i in layout.switches:
            devices.append({"name": name})
            continue
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
    wires = random_wires(len(layout.nodes), link_probability, rng) if layout.wires is None else layout.wires
    links = [
        {
            "src": layout.nodes[a],
            "dst": layout.nodes[b],
            "bandwidth": round((uniform(100, 1000) if speed is None else speed) * scale, 3),
        }
        for (a, b), speed in wires.items()
    ]
    count = tasks if tasks is not None else int(rng.integers(3, 9))
    asked = [{"name": f"t{i}", "cpu": uniform(10, 50), "memory": uniform(10, 50)} for i in range(count)]
    talk = nx.gnp_random_graph(count, flow_probability, seed=int(rng.integers(2**31)))
    join_pieces(talk, rng)
    flows = [
        {"src": f"t{i}", "dst": f"t{j}", "min": uniform(10, 50), "max": uniform(50, 100)}
        for i, j in sorted((min(edge), max(edge)) for edge in talk.edges)
    ]
    job = {"name": f"{regime}-{seed}", "tasks": asked, "flows": flows}
    instance: dict[str, Any] = {"nodes": devices, "links": links, "job": job}
    return instance | ({"left_out": list(layout.left_out)} if layout.left_out else {})
