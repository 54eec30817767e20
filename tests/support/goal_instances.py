"""Small instances with goals, drawn by a seed: deadlines, energy, reliability, groups, held tasks and sources."""

from __future__ import annotations

from typing import Any

import numpy as np

Instance = dict[str, Any]
CLASSES = ("matrix", "integer")


def goal_instance(seed: int, *, nodes: int | None = None, tasks: int | None = None, strict: bool = False) -> Instance:
    """Some of these have no place. ``strict``: deadlines and reliability so near to what is possible that many have
    none."""
    rng = np.random.default_rng([seed, 20_261])
    count = nodes or int(rng.integers(3, 5))

    def uniform(low: float, high: float) -> float:
        return round(float(rng.uniform(low, high)), 3)

    def chance(share: float) -> bool:
        return bool(rng.random() < share)

    names = [f"n{i}" for i in range(count)]
    machines = [_node(name, uniform, chance) for name in names]
    ring = [(i, (i + 1) % count) for i in range(count)]
    wires = {(min(wire), max(wire)) for wire in [*ring, (0, min(2, count - 1))]}
    links: list[Instance] = []
    for a, b in sorted(wires):
        for src, dst in ((a, b), (b, a)):
            link = {"src": names[src], "dst": names[dst], "bandwidth": uniform(60, 200)}
            link |= {"delay_ms": uniform(0.5, 12), "nj_per_bit": uniform(0, 150), "reliability": uniform(0.97, 1)}
            links.append(link | ({"bandwidth_used": uniform(0, 30)} if chance(0.4) else {}))
    wanted = tasks or int(rng.integers(2, 4))
    asked: list[Instance] = []
    for t in range(wanted):
        task: Instance = {"name": f"t{t}", "cpu": uniform(0.5, 2.5), "memory": uniform(1, 6)}
        if chance(0.8):
            task["work"] = {"per_request": uniform(2, 30)} | ({"class": CLASSES[t % 2]} if chance(0.6) else {})
            task["work"] |= {"threads": float(rng.integers(1, 3))} if chance(0.4) else {}
            task |= {"rate": uniform(1, 25)} if chance(0.7) else {}
            task |= {"longest_ms": uniform(30, 120)} if chance(0.2) else {}
        asked.append(task)
    if chance(0.15):
        asked[0]["group"] = asked[1]["group"] = "pair"
    ends = [(f"t{t}", f"t{t + 1}") for t in range(wanted - 1)] + ([("@n0", "t0")] if chance(0.6) else [])
    flows = [_flow(src, dst, uniform, chance) for src, dst in ends]
    if flows[-1]["src"] == "@n0" and chance(0.4):
        flows[-1]["sources"] = ["n0", "n1"]
    job: Instance = {"name": f"goals-{seed}", "tasks": asked, "flows": flows}
    job["chains"] = _chains(asked, flows, 0.35 if strict else 1.0, uniform, chance)
    if chance(0.7 if strict else 0.4):
        job["least_reliability"] = uniform(0.9, 0.999) if strict else uniform(0.7, 0.92)
    if chance(0.8):
        parts = rng.dirichlet([1.0] * 4)
        job["objective"] = dict(zip(("balance", "bandwidth", "time", "energy"), parts.tolist(), strict=True))
    if chance(0.3):
        job["held"] = [{"task": "t0", "node": names[int(rng.integers(count))], "cost": uniform(0, 0.2)}]
    return {"nodes": machines, "links": links, "job": job}


def pipeline(**job: Any) -> Instance:
    """A camera's frames to be seen: on the roof, slowly, or behind 22 ms of radio at the gate."""
    return {
        "nodes": [
            {"name": "roof1", "cpu": 4, "memory": 4, "speed": {"matrix": 0.5}, "reliability": 0.95},
            {"name": "gate1", "cpu": 4, "memory": 4, "speed": {"matrix": 2}, "reliability": 0.9},
        ],
        "links": [
            {"src": "roof1", "dst": "gate1", "bandwidth": 100, "delay_ms": 12},
            {"src": "gate1", "dst": "roof1", "bandwidth": 100, "delay_ms": 12},
        ],
        "job": {
            "tasks": [
                {"name": "t0", "cpu": 1, "memory": 1, "work": {"per_request": 19}, "allowed": ["roof1"]},
                {"name": "t1", "cpu": 1, "memory": 1, "work": {"per_request": 40, "class": "matrix"}},
            ],
            "flows": [{"src": "t0", "dst": "t1", "min": 10, "max": 40, "message": 50_000}],
            "chains": [
                {"name": "loop", "tasks": ["t0", "t1"], "flows": [["t0", "t1"]], "deadline_ms": 50, "hard": True}
            ],
        }
        | job,
    }


def _node(name: str, uniform: Any, chance: Any) -> Instance:
    node = {"name": name, "cpu": uniform(3, 8), "memory": uniform(6, 16), "reliability": uniform(0.97, 1)}
    if chance(0.4):
        node |= {"cpu_used": uniform(0, 1), "memory_used": uniform(0, 2)}
    if chance(0.6):
        node["speed"] = {each: uniform(0.5, 4) for each in CLASSES if chance(0.9)}
    if chance(0.5):
        idle = uniform(2, 20)
        node |= {"idle_w": idle, "peak_w": round(idle + uniform(1, 60), 3)}
    elif chance(0.6):
        watts = np.sort([uniform(2, 80) for _ in range(11)])
        node["power_w"] = [float(each) for each in watts]
    return node | ({"sleeping": True} if chance(0.25) else {})


def _flow(src: str, dst: str, uniform: Any, chance: Any) -> Instance:
    low = uniform(1, 15)
    flow = {"src": src, "dst": dst, "min": low, "max": low if chance(0.1) else round(low + uniform(1, 60), 3)}
    return flow | ({"message": uniform(1_000, 120_000)} if chance(0.7) else {})


def _chains(tasks: list[Instance], flows: list[Instance], slack: float, uniform: Any, chance: Any) -> list[Instance]:
    """The whole pipeline as one request, and perhaps its first task alone as another."""
    pipeline: Instance = {
        "name": "loop",
        "tasks": [task["name"] for task in tasks],
        "flows": [[flow["src"], flow["dst"]] for flow in flows],
        "deadline_ms": round(slack * uniform(25, 160), 3),
    }
    pipeline |= {"hard": True} if chance(0.5) else {}
    pipeline |= {"fixed_ms": uniform(0, 8)} if chance(0.5) else {}
    chains = [pipeline]
    if chance(0.5):
        ends = [flows[0]["src"], flows[0]["dst"]]
        first = round(slack * uniform(8, 60), 3)
        chains.append({"name": "first", "tasks": ["t0"], "flows": [ends], "deadline_ms": first})
    if chance(0.2):
        chains.append(pipeline | {"tasks": ["t1"], "fixed_ms": uniform(0, 20)})  # another branch of the same request
    return chains
