"""The hosts, and applications drawn at random: the same seed, the same applications. Pure.

Drawn so that the machine underneath is no bottleneck: few requests a second, each with little work.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

from ces_testbed.topology import Topology

SITES = {"s1": ("n1", "n2", "n3"), "s2": ("n4", "n5", "n6")}
"""A switch for each site, and its hosts."""
LINK = "40Mbit"
ACCESS_US = (1000, 2000, 3000)
"""One way between a host and its switch, microseconds."""
BACKBONE_US = 8000
KINDS = ("compute", "content", "complex")
"""All whose answers come back to their user: with two clocks nobody knows how long a message took one way."""
MOST_TASKS = 4
PIPELINE = ("python", "-m", "ces_workloads.pipeline")
LARGEST = 8000
"""Bytes of the largest message."""
SPARE_MS = 30.0
"""What a deadline leaves beside what was guessed for it."""

File = dict[str, Any]


def topology() -> Topology:
    """Two sites of three hosts; a host of one site is 10 to 14 ms from one of the other."""
    hosts = [host for site in SITES.values() for host in site]
    nodes: list[File] = [
        {"name": host, "cpu": 8, "memory": "8Gi", "labels": {"host": host, "site": switch}}
        for switch, site in SITES.items()
        for host in site
    ]
    links: list[File] = [
        {"src": host, "dst": switch, "bandwidth": LINK, "delay": f"{delay}us"}
        for switch, site in SITES.items()
        for host, delay in zip(site, ACCESS_US, strict=True)
    ]
    links.append({"src": "s1", "dst": "s2", "bandwidth": LINK, "delay": f"{BACKBONE_US}us"})
    assert len(hosts) == len(set(hosts))
    return Topology.model_validate({"nodes": [*nodes, *({"name": switch} for switch in SITES)], "links": links})


def applications(seed: int, count: int, largest: int = LARGEST) -> list[File]:
    """Application files; ``largest``: bytes of their largest messages. The user of each is at one site, and one of its
    tasks must run at the other."""
    rng = random.Random(seed)
    return [_application(rng, f"app{number:02}", largest) for number in range(1, count + 1)]


def _application(rng: random.Random, name: str, largest: int) -> File:
    home, away = rng.sample(list(SITES), 2)
    tasks = rng.randint(1, MOST_TASKS)
    kind = rng.choice(KINDS if tasks > 1 else KINDS[:2])
    rate = rng.randint(4, 10)
    groups = [_task(rng, f"t{number}") for number in range(1, tasks + 1)]
    rng.choice(groups)["constraints"] = {"labels": {"site": away}}
    edges, rates = _edges(rng, kind, [group["name"] for group in groups], largest)
    sender: File = {"name": "user", **_worker("500m"), "constraints": {"user": "u"}}
    sender["command"] += ["--answers"]
    guess = sum(_work_ms(group, rate) for group in groups) + sum(
        BACKBONE_US / 1000 + edge["message"] * 8 / least / 1000 for edge, least in zip(edges, rates, strict=True)
    )
    request = {
        "name": "ask",
        "from": "u",
        "rate": rate,
        "chain": [*(group["name"] for group in groups), "u"],
        "deadline": f"{round((SPARE_MS + guess * rng.uniform(1.2, 1.8)) / 10) * 10}ms",
        "hard": rng.random() < 0.5,
    }
    return {
        "name": name,
        "kind": kind,
        "users": [{"name": "u", "at": {"node": rng.choice(SITES[home])}}],
        "tasks": [sender, *groups],
        "flows": {"edges": edges},
        "requests": [request],
        "objective": {"balance": 0.3, "bandwidth": 0.3, "time": 0.4},
    }


def _worker(cpu: str) -> File:
    return {"command": list(PIPELINE), "resources": {"cpu": cpu, "memory": "128Mi"}}


def _task(rng: random.Random, name: str) -> File:
    work = rng.randint(5, 40) / 10
    return {"name": name, **_worker(rng.choice(("500m", "1"))), "work": {"per_request": f"{work}ru", "threads": 1}}


def _work_ms(group: File, rate: float) -> float:
    """By the model, on the reference core."""
    cores = 0.5 if group["resources"]["cpu"] == "500m" else 1.0
    service = float(group["work"]["per_request"].removesuffix("ru")) / cores
    return service / (1 - rate * service / 1000)


def _edges(rng: random.Random, kind: str, tasks: list[str], largest: int) -> tuple[list[File], list[int]]:
    """The flows along the chain and back to the user, and the least rate of each in Mbit/s."""
    steps = [*pairwise(["user", *tasks, "user"])]
    edges, rates = [], []
    for number, (src, dst) in enumerate(steps):
        least = rng.randint(4, 8)
        small, large = rng.randint(200, 1000), rng.randint(largest // 4, largest)
        is_large = number == len(steps) - 1 if kind == "content" else number < len(steps) - 1
        bandwidth = {"min": f"{least}Mbit", "max": f"{2 * least}Mbit"}
        edges.append(
            {"src": f"{src}-0", "dst": f"{dst}-0", "bandwidth": bandwidth, "message": large if is_large else small}
        )
        rates.append(least)
    return edges, rates
