"""Clusters with committed jobs: what the network of every node is made from, before and after something changed."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from equivalence.record import Case

COUNT = 50
SHAPES = ("line", "ring", "star", "mesh", "random")
MBIT = 1_000_000
RESERVABLE = 0.9
"""The share of a link that flows take together, at most."""
STATES = ("running", "running", "running", "planned", "suspended", "paused", "rescheduling", "queued")


def network_cases(share: float = 1.0) -> Iterator[Case]:
    """50 topologies, or a share of them."""
    for i in range(max(1, round(COUNT * share))):
        rng = np.random.default_rng([99, i])
        graph = _graph(SHAPES[i % 5], 2 + i // 5 % 7)
        names = [f"n{n}" for n in graph.nodes]
        media = {"air": 200 * MBIT} if i % 4 == 1 else {}
        links = _links(graph, i, bool(media), rng)
        jobs = _jobs(names, links, 1 + i % 4, rng)
        states = [{"links": links, "jobs": jobs}, _changed(links, jobs, i, rng)]
        yield {
            "name": f"network-{i}",
            "nodes": [
                {"name": name, "subnet": f"10.77.{n + 1}.0/24", "host": f"192.0.2.{n + 1}",
                 "network": "none" if i % 6 == 5 and n == 0 else "tc"}
                for n, name in enumerate(names)
            ],
            "media": media,
            "mtu": (1500, 9000)[i % 7 == 6],
            "underlay_mtu": (1500, 1400)[i % 5 == 4],
            "unconnected": [f"{jobs[0]['name']}-w-0"] if i % 9 == 8 else [],
            "states": states,
        }  # fmt: skip


def _graph(shape: str, nodes: int) -> nx.Graph[int]:
    match shape:
        case "line":
            return nx.path_graph(nodes)
        case "ring":
            return nx.cycle_graph(max(nodes, 3))
        case "star":
            return nx.star_graph(nodes - 1)
        case "mesh":
            return nx.complete_graph(min(nodes, 6))
    return nx.connected_watts_strogatz_graph(max(nodes, 5), 4, 0.4, seed=nodes)


def _links(graph: nx.Graph[int], i: int, shared: bool, rng: np.random.Generator) -> list[dict[str, Any]]:
    links: list[dict[str, Any]] = []
    for a, b in graph.edges:
        kind = ("veth", "vxlan")[i % 2] if i % 3 else str(rng.choice(["veth", "vxlan"]))
        medium = "air" if shared and rng.random() < 0.5 else None
        for src, dst in ((a, b), (b, a)):
            bandwidth = int(rng.integers(4, 1000)) * MBIT
            measured = bandwidth // 2 if rng.random() < 0.1 else None
            up = bool(rng.random() < 0.95)
            ends = {"src": f"n{src}", "dst": f"n{dst}"}
            links.append(
                ends | {"bandwidth": bandwidth, "kind": kind, "medium": medium, "up": up, "measured": measured}
            )
    return links


def _jobs(names: list[str], links: list[dict[str, Any]], count: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    for link in links:
        graph.add_edge(link["src"], link["dst"], room=RESERVABLE * min(link["bandwidth"], link["measured"] or 10**12))
    numbers, jobs = itertools.count(1), []
    for j in range(count):
        nodes = rng.choice(names, int(rng.integers(1, 6))).tolist()
        tasks = [
            {"name": f"w-{rank}", "node": node, "address": f"10.77.{names.index(node) + 1}.{8 * j + rank + 2}",
             "state": "running"}
            for rank, node in enumerate(nodes)
        ]  # fmt: skip
        ends = [(a["name"], b["name"], a["node"], b["node"]) for a in tasks for b in tasks if a is not b]
        ends += [(f"@{node}", a["name"], node, a["node"]) for a in tasks for node in names[:2]]
        flows = []
        for src, dst, at, to in ends:
            if rng.random() > 0.35 or not nx.has_path(graph, at, to):
                continue
            path = _path(graph, at, to, rng)
            hops = list(itertools.pairwise(path))
            room = min((graph.edges[hop]["room"] for hop in hops), default=10 * MBIT)
            rate = int(room * float(rng.uniform(0.0, 0.5))) if rng.random() < 0.9 else 0
            for hop in hops:
                graph.edges[hop]["room"] -= rate
            flows.append(
                {"src": src, "dst": dst, "number": next(numbers), "min": rate // 2, "max": 2 * rate + MBIT,
                 "rate": rate, "path": path, "elastic": bool(rng.random() < 0.4),
                 "datasets": ["digits"] if src.startswith("@") and rng.random() < 0.5 else []}
            )  # fmt: skip
        state = str(rng.choice(STATES))
        jobs.append({"name": f"j{j}", "attempt": 1 + j % 3, "state": state, "tasks": tasks, "flows": flows})
    return jobs


def _path(graph: nx.DiGraph[str], src: str, dst: str, rng: np.random.Generator) -> list[str]:
    """The shortest path, or one of those that are a hop longer."""
    shortest = nx.shortest_path_length(graph, src, dst)
    if shortest == 0:
        return [src]
    paths = sorted(itertools.islice(nx.shortest_simple_paths(graph, src, dst), 6))
    close = [path for path in paths if len(path) <= shortest + 2]
    chosen: list[str] = close[int(rng.integers(len(close)))]
    return chosen


def _changed(
    links: list[dict[str, Any]], jobs: list[dict[str, Any]], i: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Rates and attempts change, a job ends, one more worker is gone, links fail and come up."""
    links, jobs = copy.deepcopy(links), copy.deepcopy(jobs)
    for job in jobs:
        for flow in job["flows"]:
            flow["rate"] = int(flow["rate"] * (0.5, 1.0, 1.05)[int(rng.integers(3))])
        if rng.random() < 0.2:
            job["attempt"] += 1
    if i % 3 == 1:
        jobs[0]["state"] = "succeeded"
        jobs[0]["tasks"][0]["state"] = "stopping"
    if i % 3 == 2:
        for link in links:
            if rng.random() < 0.2:
                link["up"] = not link["up"]
    if i % 5 == 3:
        links[0]["bandwidth"] *= 2
    return {"links": links, "jobs": jobs}
