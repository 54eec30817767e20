"""Running flows whose network has changed: links that failed, shrank or grew, flows that left."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from equivalence.core_adapter import random_instance
from equivalence.placement_cases import REGIMES, SHAPES
from equivalence.record import Case

COUNT = 36


def reroute_cases(share: float = 1.0) -> Iterator[Case]:
    """36 cases, or a share of them."""
    for i in range(max(1, round(COUNT * share))):
        rng = np.random.default_rng([88, i])
        nodes = (6, 9, 12, 20)[i % 4]
        instance = random_instance(REGIMES[i // 4 % 3], 300 + i, nodes=nodes, topology=SHAPES[i % 4], tasks=1)
        if i % 3 == 0:
            for link in instance["links"]:
                if rng.random() < 0.3:
                    link["medium"] = "air"
            instance["media"] = {"air": 300.0}
        flows = _running(instance, 4 + i % 13, rng)
        _change(instance, flows, i, rng)
        yield {"name": f"reroute-{i}", "instance": instance, "flows": flows}


def _running(instance: dict[str, Any], count: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Flows on shortest or longer paths, which together keep to the links' capacities."""
    graph = nx.DiGraph()
    for link in instance["links"]:
        graph.add_edge(link["src"], link["dst"], room=link["bandwidth"], medium=link.get("medium"))
    ends = sorted(node["name"] for node in instance["nodes"] if "cpu" in node)
    air = instance.get("media", {}).get("air", 0.0)
    flows = []
    for _ in range(count):
        src, dst = rng.choice(ends, 2, replace=False).tolist()
        paths = sorted(nx.all_simple_paths(graph, src, dst, cutoff=nx.shortest_path_length(graph, src, dst) + 1))
        path = paths[int(rng.integers(len(paths)))]
        hops = [graph.edges[hop] for hop in pairwise(path)]
        shared = sum(hop["medium"] == "air" for hop in hops)
        room = min([hop["room"] for hop in hops] + ([air / shared] if shared else []))
        rate = round(0.6 * room * float(rng.uniform(0.2, 1.0)), 3)
        for hop in hops:
            hop["room"] -= rate
        air -= rate * shared
        low = round(rate * float(rng.uniform(0.1, 1.1)), 3)
        flows.append(
            {"low": low, "high": round(max(low, rate) * float(rng.uniform(1.0, 2.0)), 3), "path": path, "rate": rate}
        )
    return flows


def _change(instance: dict[str, Any], flows: list[dict[str, Any]], i: int, rng: np.random.Generator) -> None:
    links = instance["links"]
    lost = int(rng.integers(0, 3))
    for _ in range(lost):
        used = [hop for flow in flows for hop in pairwise(flow["path"])]
        src, dst = used[int(rng.integers(len(used)))]
        both = {(src, dst), (dst, src)} if rng.random() < 0.7 else {(src, dst)}
        links[:] = [link for link in links if (link["src"], link["dst"]) not in both]
    for link in links:
        if rng.random() < 0.15:
            link["bandwidth"] = round(link["bandwidth"] * float(rng.uniform(0.2, 2.0)), 3)
        if rng.random() < 0.1:
            link["bandwidth_used"] = round(link["bandwidth"] * float(rng.uniform(0.0, 0.3)), 3)
    if i % 4 == 3:
        del flows[: len(flows) // 2]
