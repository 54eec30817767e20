"""What the experiment runs on and what it runs: ten hosts, background load, jobs of five tasks. Pure.

Hardware is that of the thesis (4.3.3.1: four Jetson Nano, six Xavier NX), and so is the share of each node that others
hold (4.3.2.1: 10 to 50 %). Tasks ask for less of a node than there (a tenth to six tenths of a Nano, not up to all of
it), so that what decides is the network. Links are slow, so that ten hosts on few cores are limited by the network
and not by those cores.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ces_common.jobfile import JobFile
from ces_testbed.topology import Topology

KBIT = 1_000
LINK = 8_000 * KBIT  # bit/s, every wire, each way
SWITCH = "s1"
DEVICES = {"nano": (4, 4_000, 4 << 30), "nx": (6, 6_000, 8 << 30)}  # how many, millicores, bytes
MESH = [("nano1", "nx1"), ("nano2", "nx2"), ("nano3", "nx3"), ("nano4", "nx4"), ("nx5", "nx6")]

TASKS = 5
TASK_CPU = (400, 2_400)  # millicores
TASK_MEMORY = (410, 2_458)  # MiB
FLOW_MIN = (400, 800)  # kbit/s
FLOW_MAX = (4_000, 8_000)
LEAST = 8 * KBIT  # asked as minimum where nothing is reserved: nobody is refused for want of bandwidth there

IN_USE = (0.1, 0.5)  # share of each node's CPU and memory that others hold
STREAM = (0.08, 0.2)  # share of a link that one background stream sends
CROWD = (0.0, 0.9)  # share of a link that background streams may send together, drawn for each
BURN = 0.01  # share of a core that background work really burns on each host

TRAINING = {
    "gossip": 96,
    "etree": 48,
    "parameter-server": 48,
    "ring": 96,
}  # architecture -> width of both hidden layers


@dataclass(frozen=True)
class Scenario:
    """Everything that a seed decides. ``background`` and ``jobs`` are job files; jobs by architecture."""

    background: JobFile
    jobs: Mapping[str, JobFile]


def topology() -> Topology:
    """Ten hosts on one switch, and five wires between pairs of them."""
    nodes: list[dict[str, Any]] = [
        {"name": f"{device}{i + 1}", "cpu": f"{cpu}m", "memory": memory, "labels": {"host": f"{device}{i + 1}"}}
        for device, (count, cpu, memory) in DEVICES.items()
        for i in range(count)
    ]
    wires = [*((node["name"], SWITCH) for node in nodes), *MESH]
    links = [{"src": a, "dst": b, "bandwidth": LINK} for a, b in wires]
    return Topology.model_validate({"nodes": [*nodes, {"name": SWITCH}], "links": links})


def scenario(seed: int, architectures: list[str], accuracy: float, seconds: float) -> Scenario:
    """``accuracy``: at which training ends; ``seconds``: after which background load ends by itself."""
    jobs = {name: training(seed, name, accuracy) for name in architectures}
    return Scenario(background(seed, seconds), jobs)


def background(seed: int, seconds: float) -> JobFile:
    """One task on each host, which holds a share of it; and streams between them, which send what they reserve."""
    chance = random.Random(f"{seed}/background")
    tasks = []
    for node in topology().workers:
        cpu, memory = (round(amount * chance.uniform(*IN_USE)) for amount in (node.cpu, node.memory))
        tasks.append(
            {
                "name": node.name,
                "command": ["python", "-m", "ces_experiments.testbed.load", str(seconds), str(BURN)],
                "resources": {"cpu": f"{cpu}m", "memory": memory},
                "constraints": {"labels": {"host": node.name}},
            }
        )
    edges = [
        {"src": f"{src}-0", "dst": f"{dst}-0", "bandwidth": {"min": rate, "max": rate}}
        for (src, dst), rate in streams(chance).items()
    ]
    return JobFile.model_validate(
        {"name": f"background-{seed}", "priority": 100, "tasks": tasks, "flows": {"topology": "edges", "edges": edges}}
    )


def streams(chance: random.Random) -> dict[tuple[str, str], int]:
    """Source and destination -> bit/s. All go over the switch, by their only shortest path, until each link carries
    about the share that was drawn for it."""
    names = [node.name for node in topology().workers]
    room = {(name, way): chance.uniform(*CROWD) * LINK for name in names for way in ("out", "in")}
    wired = {frozenset(wire) for wire in MESH}
    pairs = [(a, b) for a in names for b in names if a != b and frozenset((a, b)) not in wired]
    chance.shuffle(pairs)
    found: dict[tuple[str, str], int] = {}
    for src, dst in pairs:
        rate = round(chance.uniform(*STREAM) * LINK)
        if rate <= min(room[src, "out"], room[dst, "in"]):
            room[src, "out"] -= rate
            room[dst, "in"] -= rate
            found[src, dst] = rate
    return found


def training(seed: int, architecture: str, accuracy: float) -> JobFile:
    """Five tasks that train together until they are so good."""
    chance = random.Random(f"{seed}/{architecture}")
    width = TRAINING[architecture]
    options = ["--hidden", f"{width},{width}", "--seed", str(seed), "--until-accuracy", str(accuracy)]
    command = ["python", "-m", "ces_workloads.train", "--algorithm", architecture, "--rounds", "1000", *options]
    tasks = [
        {
            "name": f"worker{i}",
            "command": command,
            "resources": {
                "cpu": f"{chance.randint(*TASK_CPU)}m",
                "memory": f"{chance.randint(*TASK_MEMORY)}Mi",
            },
        }
        for i in range(TASKS)
    ]
    edges = [
        {
            "src": f"worker{a}-0",
            "dst": f"worker{b}-0",
            "bandwidth": {"min": chance.randint(*FLOW_MIN) * KBIT, "max": chance.randint(*FLOW_MAX) * KBIT},
        }
        for a, b in flows(architecture, chance)
    ]
    return JobFile.model_validate(
        {
            "name": f"{architecture}-{seed}",
            "tasks": tasks,
            "flows": {"topology": "edges", "mode": "elastic", "edges": edges},
            "restart": {"policy": "never"},
        }
    )


def flows(architecture: str, chance: random.Random) -> list[tuple[int, int]]:
    """Who sends to whom, by rank: drawn where the architecture leaves it open."""
    ranks = range(TASKS)
    if architecture == "ring":
        return [(i, (i + 1) % TASKS) for i in ranks]
    if architecture == "parameter-server":
        undirected = [(0, i) for i in ranks[1:]]
    elif architecture == "etree":
        parents = [0, 0]
        while max(parents[1:]) == 0:  # three levels at least
            parents = [0, *(chance.randrange(i) for i in ranks[1:])]
        undirected = [(parents[i], i) for i in ranks[1:]]
    else:
        tree = {(chance.randrange(i), i) for i in ranks[1:]}
        undirected = [pair for pair in combinations(ranks, 2) if pair in tree or chance.random() < 0.4]
    return [pair for a, b in undirected for pair in ((a, b), (b, a))]


def without_reservations(job: JobFile) -> JobFile:
    """The same job where bandwidth is no reason to refuse it a place."""
    edges = [
        edge.model_copy(update={"bandwidth": edge.bandwidth.model_copy(update={"min": LEAST})})
        for edge in job.flows.edges
    ]
    return job.model_copy(update={"flows": job.flows.model_copy(update={"edges": edges})})


def setting() -> dict[str, Any]:
    """What does not depend on the seed, for the results."""
    return {
        "link": LINK,
        "tasks": TASKS,
        "task_cpu_millicores": TASK_CPU,
        "task_memory_mib": TASK_MEMORY,
        "flow_min_kbit": FLOW_MIN,
        "flow_max_kbit": FLOW_MAX,
        "in_use": IN_USE,
        "background_stream": STREAM,
        "background_link": CROWD,
        "background_cpu_burned": BURN,
        "hidden": TRAINING,
    }
