"""The training jobs that run through the attack, and how they fare. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ces_common.jobfile import JobFile
from ces_common.messages.api import JobView
from ces_common.states import JobState
from ces_testbed.topology import Topology

FLOWS: Final[Mapping[str, str]] = {
    "ring": "ring", "gossip": "gossip", "etree": "tree", "parameter-server": "star",
}  # fmt: skip
ROGUE: Final = "rogue"
SWITCH: Final = "s1"
HOSTS: Final = 6
CPU, MEMORY = 500, 256 * 2**20  # of each task: millicores and bytes
LONGER: Final = 1.1  # than the attack
LEARNS_LITTLE: Final = "0.001"  # with more, some would diverge over that many rounds


def topology(tasks: int) -> Topology:
    """Six hosts and the rogue's around a switch. ``tasks`` tasks need all of them, so that they speak over the network
    and not within one host."""
    each = math.ceil(tasks / HOSTS)
    hosts = [
        {"name": name, "cpu": f"{each * CPU}m", "memory": each * MEMORY}
        for name in (*(f"n{number}" for number in range(1, HOSTS + 1)), ROGUE)
    ]
    links = [{"src": host["name"], "dst": SWITCH, "bandwidth": "200Mbit"} for host in hosts]
    return Topology.model_validate({"nodes": [*hosts, {"name": SWITCH}], "links": links})


def job(kind: str, workers: int, hidden: int, rounds: int, name: str, seed: int) -> JobFile:
    """As the shipped examples, with less bandwidth and CPU for each."""
    told = {"algorithm": kind, "hidden": f"{hidden},{hidden}", "rounds": rounds, "seed": seed, "lr": LEARNS_LITTLE}
    options = [str(part) for option, value in told.items() for part in (f"--{option}", value)]
    task = {
        "name": "worker",
        "replicas": workers,
        "image": "ces-worker-train",
        "command": ["python", "-m", "ces_workloads.train", *options],
        "resources": {"cpu": f"{CPU}m", "memory": MEMORY},
    }
    flows = {"topology": FLOWS[kind], "bandwidth": {"min": "2Mbit", "max": "10Mbit"}}
    return JobFile.model_validate({"name": f"{name}-{kind}", "tasks": [task], "flows": flows, "disconnect": "stop"})


def round_of(view: JobView) -> int:
    """How many rounds the job's slowest worker has told of."""
    told = [task.progress or {} for task in view.placement]
    return min((int(each.get("round") or each.get("rounds") or 0) for each in told), default=0)


def rounds_for(seconds: float, rounds: int, took_s: float) -> int:
    """How many rounds last somewhat longer than ``seconds``, given that ``rounds`` took ``took_s``."""
    return max(1, math.ceil(rounds * seconds * LONGER / max(took_s, 0.001)))


def seconds_of(view: JobView) -> float:
    """How long the job has trained, as its slowest worker tells."""
    return max(float((task.progress or {}).get("seconds") or 0.0) for task in view.placement)


def complaints(views: Sequence[JobView]) -> list[str]:
    """What is not as if nothing had been."""
    found = []
    for view in views:
        if view.state != JobState.SUCCEEDED:
            found.append(f"job {view.name} {view.state}: {view.reason or 'no reason given'}")
        if (view.attempt, view.restarts) != (1, 0):
            found.append(f"job {view.name} took {view.attempt} attempts and {view.restarts} restarts")
        if any(task.node == ROGUE for task in view.placement):
            found.append(f"job {view.name} ran on the rogue's node")
    return found


def slowdown(before: Mapping[str, float], during: Mapping[str, float]) -> dict[str, Any]:
    """By kind: milliseconds of a round without and with the attack, and how they compare."""
    return {
        kind: {"before_ms": before[kind] * 1e3, "during_ms": during[kind] * 1e3, "ratio": during[kind] / before[kind]}
        for kind in before
        if kind in during and before[kind] > 0
    }
