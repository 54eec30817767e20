"""Instances to place jobs on: three regimes, many shapes of network, and everything that an instance can say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from equivalence.clock import stopped_clock
from equivalence.core_adapter import random_instance, solve, solver_names
from equivalence.record import Case

REGIMES = ("thesis", "tight", "scarce")
SHAPES = ("random", "grid", "ring", "fat-tree")
PROVABLE = 7
"""Tasks up to which ``exact`` is asked: it ends by its own proof within a second then. One less with K paths, and two
less on more than ten devices."""
PROBE = "lookahead"
"""Finds out within milliseconds whether a larger job has a place: without a clock some solvers search for minutes
where there is none."""
TRIES = 50

Rng = np.random.Generator
Instance = dict[str, Any]


def placement_cases(share: float = 1.0) -> Iterator[Case]:
    """300 cases, or a share of each kind."""
    for kind, count, make in KINDS:
        for i in range(max(1, round(count * share))):
            rng = np.random.default_rng([len(kind), *kind.encode(), i])
            options = {"basis": "system", "paths": None} | (made := make(i, rng))
            case = {"name": f"{kind}-{i}", "seed": i % 4, **options, "instance": made["instance"]}
            yield case | {"ask": _asked(case)}


def _asked(case: Case) -> list[str]:
    tasks = len(case["instance"]["job"]["tasks"])
    devices = sum("cpu" in node for node in case["instance"]["nodes"])
    provable = devices <= 20 and tasks <= PROVABLE - (case["paths"] is not None) - 2 * (devices > 10)
    return [name for name in solver_names() if name != "exact" or provable]


def _drawn(i: int, **more: Any) -> Instance:
    return random_instance(REGIMES[i % 3], 5_000 + i, **more)


def _placeable(i: int, **more: Any) -> Case:
    """The first that is drawn with a place for its job."""
    for attempt in range(TRIES):
        instance = random_instance(REGIMES[i % 3], 5_000 + i + 1_000 * attempt, **more)
        with stopped_clock():
            if solve({"instance": instance, "basis": "system", "paths": None, "seed": 0}, PROBE)["feasible"]:
                return {"instance": instance}
    raise ValueError(f"none of {TRIES} drawn jobs has a place: {more}")


def _plain(i: int, rng: Rng) -> Case:
    return {"instance": _drawn(i, tasks=3 + i // 3 % 6)}


def _many_tasks(i: int, rng: Rng) -> Case:
    return _placeable(i, nodes=20 + 5 * (i % 3), tasks=(9, 12, 16)[i // 3 % 3], flow_probability=0.15)


def _large(i: int, rng: Rng) -> Case:
    nodes, tasks = (50, 64, 100)[i % 3], (5, 8, 12)[i // 2 % 3]
    return _placeable(i, nodes=nodes, topology=SHAPES[i % 4], tasks=tasks, flow_probability=0.2)


def _huge(i: int, rng: Rng) -> Case:
    return _placeable(i, nodes=300, tasks=16)


def _shaped(i: int, rng: Rng) -> Case:
    return _placeable(i, nodes=(9, 12, 16, 20)[i // 4 % 4], topology=SHAPES[i % 4], tasks=3 + i % 4)


def _media(i: int, rng: Rng) -> Case:
    instance = _drawn(i)
    _share_media(instance, rng)
    return {"instance": instance}


def _allowed(i: int, rng: Rng) -> Case:
    instance = _drawn(i)
    names = [node["name"] for node in instance["nodes"]]
    for task in instance["job"]["tasks"]:
        if rng.random() < 0.6:
            task["allowed"] = sorted(rng.choice(names, int(rng.integers(1, 5)), replace=False).tolist())
    return {"instance": instance}


def _node_ends(i: int, rng: Rng) -> Case:
    instance = _drawn(i)
    _add_node_flows(instance, rng)
    return {"instance": instance}


def _k_paths(i: int, rng: Rng) -> Case:
    return {"instance": _drawn(i), "paths": (1, 2, 4, 8)[i % 4]}


def _gpu(i: int, rng: Rng) -> Case:
    instance = _drawn(i)
    for node in instance["nodes"]:
        node["gpu"] = int(rng.integers(0, 3))
        node["gpu_used"] = int(rng.integers(0, node["gpu"] + 1)) // 2
    for task in instance["job"]["tasks"]:
        task["gpu"] = int(rng.random() < 0.5)
    return {"instance": instance}


def _job_basis(i: int, rng: Rng) -> Case:
    return {"instance": _drawn(i), "basis": "job"}


def _weights(i: int, rng: Rng) -> Case:
    weights = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5], [0.0, 0.0, 0.0]][i % 4]
    return {"instance": _drawn(i) | {"weights": weights}}


def _crowded(i: int, rng: Rng) -> Case:
    """Hardly any room, or none: what a refusal says."""
    instance = _drawn(i, tasks=4 + i % 5)
    scale = 0.5 + 0.4 * float(rng.random())
    for node in instance["nodes"]:
        for what in ("cpu", "memory"):
            node[f"{what}_used"] = round(node[what] * scale, 3)
    for link in instance["links"]:
        link["bandwidth_used"] = round(link["bandwidth"] * float(rng.uniform(0.0, 1.0)), 3)
    return {"instance": instance}


def _everything(i: int, rng: Rng) -> Case:
    made = _gpu(i, rng)
    _share_media(made["instance"], rng)
    _add_node_flows(made["instance"], rng)
    made["instance"]["job"]["tasks"][0]["allowed"] = ["n1", "n2", "n3"]
    return made | {"paths": (None, 3)[i % 2], "basis": ("system", "job")[i // 2 % 2]}


def _wild(i: int, rng: Rng) -> Case:
    """Small and lopsided: missing links, nodes without capacity, flows between nodes, nothing free."""
    names = [f"n{n}" for n in range(int(rng.integers(1, 7)))]

    def amount(most: float) -> float:
        return 0.0 if rng.random() < 0.1 else round(float(rng.uniform(0, most)), 3)

    nodes = [{"name": name, "cpu": amount(20), "memory": amount(20), "cpu_used": amount(5), "memory_used": amount(5)}
             for name in names]  # fmt: skip
    links = [
        {"src": a, "dst": b, "bandwidth": amount(100), "bandwidth_used": amount(30)}
        | ({"medium": "air"} if rng.random() < 0.3 else {})
        for a in names
        for b in names
        if a != b and rng.random() < 0.6
    ]
    tasks = [{"name": f"t{t}", "cpu": amount(5), "memory": amount(5)} for t in range(int(rng.integers(1, 6)))]
    ends = [task["name"] for task in tasks] + [f"@{name}" for name in names]
    flows = []
    for a in ends:
        for b in ends:
            if a != b and rng.random() < 0.2:
                low = amount(20)
                flows.append({"src": a, "dst": b, "min": low, "max": round(low + amount(60), 3)})
    return {
        "instance": {
            "nodes": nodes,
            "links": links,
            "media": {"air": amount(100)},
            "job": {"name": f"wild-{i}", "tasks": tasks, "flows": flows},
        }
    }


def _share_media(instance: Instance, rng: Rng) -> None:
    """A third of the wires are channels of two or three media."""
    instance["media"] = {f"air{m}": round(float(rng.uniform(100, 400)), 3) for m in range(int(rng.integers(2, 4)))}
    names = list(instance["media"])
    chosen: dict[tuple[str, ...], str] = {}
    for link in instance["links"]:
        wire = tuple(sorted((link["src"], link["dst"])))
        if wire not in chosen:
            chosen[wire] = str(rng.choice(names)) if rng.random() < 0.35 else ""
        if chosen[wire]:
            link["medium"] = chosen[wire]


def _add_node_flows(instance: Instance, rng: Rng) -> None:
    """Data that lie on nodes, and sinks."""
    names = [node["name"] for node in instance["nodes"]]
    for task in instance["job"]["tasks"]:
        if rng.random() < 0.5:
            ends = [f"@{rng.choice(names)}", task["name"]]
            src, dst = ends if rng.random() < 0.7 else ends[::-1]
            low = round(float(rng.uniform(1, 30)), 3)
            flow = {"src": src, "dst": dst, "min": low, "max": round(low + float(rng.uniform(0, 60)), 3)}
            instance["job"]["flows"].append(flow)


KINDS: tuple[tuple[str, int, Callable[[int, Rng], Case]], ...] = (
    ("plain", 108, _plain),
    ("many-tasks", 12, _many_tasks),
    ("large", 18, _large),
    ("huge", 2, _huge),
    ("shaped", 16, _shaped),
    ("media", 24, _media),
    ("allowed", 16, _allowed),
    ("node-ends", 20, _node_ends),
    ("k-paths", 20, _k_paths),
    ("gpu", 14, _gpu),
    ("job-basis", 10, _job_basis),
    ("weights", 8, _weights),
    ("crowded", 12, _crowded),
    ("everything", 8, _everything),
    ("wild", 12, _wild),
)
