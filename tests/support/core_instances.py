"""Any instance at all, small: what every solver must cope with."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ces_core.model.topology import Topology

amounts = st.floats(0, 20, allow_nan=False).map(lambda value: round(value, 3))
rates = st.floats(0, 100, allow_nan=False).map(lambda value: round(value, 3))


def topology_of(
    nodes: Iterable[str], links: Iterable[tuple[str, str, str | None]], media: Iterable[str] = ()
) -> Topology:
    """The topology with these nodes, links ``(src, dst, medium or None)`` and media."""
    names, shared = tuple(nodes), tuple(media)
    node = {name: i for i, name in enumerate(names)}
    medium: dict[str | None, int] = {name: i for i, name in enumerate(shared)} | {None: -1}
    rows = [(node[src], node[dst], medium[over]) for src, dst, over in links]
    return Topology.of(names, shared, *np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy())


@st.composite
def instances(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(1, 6))
    names = [f"n{i}" for i in range(count)]
    nodes = [
        {"name": name, **{key: draw(amounts) for key in ("cpu", "memory", "cpu_used", "memory_used")}} for name in names
    ]
    for node in draw(st.lists(st.sampled_from(nodes), max_size=2)):
        node["gpu"] = draw(st.integers(0, 2))
    pairs = [(a, b) for a in names for b in names if a != b]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=14)) if pairs else []
    links = [
        {
            "src": a,
            "dst": b,
            "bandwidth": draw(rates),
            "bandwidth_used": draw(rates) / 2,
            "medium": draw(st.sampled_from([None, None, "air"])),
        }
        for a, b in chosen
    ]
    tasks: list[dict[str, Any]] = [
        {
            "name": f"t{i}",
            "cpu": draw(amounts) / 4,
            "memory": draw(amounts) / 4,
            "gpu": draw(st.sampled_from([0, 0, 1])),
        }
        for i in range(draw(st.integers(1, 5)))
    ]
    if draw(st.booleans()):
        tasks[0]["allowed"] = draw(st.lists(st.sampled_from(names), unique=True))
    ends = [task["name"] for task in tasks] + [f"@{name}" for name in names]
    desired = draw(st.lists(st.tuples(st.sampled_from(ends), st.sampled_from(ends)), unique=True, max_size=8))
    flows = []
    for src, dst in desired:
        if src != dst:
            low, high = sorted([draw(rates), draw(rates)])
            flows.append({"src": src, "dst": dst, "min": low, "max": high})
    weights = draw(st.sampled_from([[1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]))
    return {
        "nodes": nodes,
        "links": links,
        "media": {"air": draw(rates)},
        "job": {"name": "j", "tasks": tasks, "flows": flows},
        "weights": weights,
    }


def rescaled(instance: dict[str, Any], node: float, memory: float, bandwidth: float) -> dict[str, Any]:
    """The same instance in other units."""
    scaled = copy.deepcopy(instance)
    factors = {"cpu": node, "memory": memory, "bandwidth": bandwidth, "min": bandwidth, "max": bandwidth}
    for item in [*scaled["nodes"], *scaled["links"], *scaled["job"]["tasks"], *scaled["job"]["flows"]]:
        for key, value in item.items():
            factor = factors.get(key.removesuffix("_used"))
            if factor is not None and key not in ("name", "src", "dst"):
                item[key] = value * factor
    scaled["media"] = {name: value * bandwidth for name, value in scaled["media"].items()}
    return scaled


def mild(instance: dict[str, Any]) -> dict[str, Any]:
    """The same instance with more room and smaller minimums: most such jobs have a place, though not everywhere."""
    eased = copy.deepcopy(instance)
    for node in eased["nodes"]:
        node |= {what: node[what] + 6 for what in ("cpu", "memory")}
        node |= {f"{what}_used": min(node[f"{what}_used"], 0.7 * node[what]) for what in ("cpu", "memory")}
        node["gpu"] = node.get("gpu", 0) + 1
    for link in eased["links"]:
        link["bandwidth_used"] = min(link["bandwidth_used"], 0.7 * link["bandwidth"])
    for task in eased["job"]["tasks"]:
        if task.get("allowed") == []:
            task["allowed"] = None
    for flow in eased["job"]["flows"]:
        flow["min"] = flow["min"] / 10
    return eased
