"""The load that the control-plane benchmark puts on a cluster, and what it reads off the event log afterwards. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from ces_common.jobfile import JobFile
from ces_common.messages.api import TopologyFile, TopologyLink
from ces_experiments.common.spread import milliseconds

CHORDS = (1, 7, 31)
LINK = 1_000_000_000  # bit/s
STAGES = ("queued", "planned", "preparing", "starting", "running")


def node_names(count: int) -> list[str]:
    return [f"s{i:03}" for i in range(count)]


def chord_topology(nodes: Sequence[str], bandwidth: int = LINK) -> TopologyFile:
    """A circle with chords: six neighbours each, few hops between any two; ``bandwidth`` of each link in bit/s."""
    count = len(nodes)
    wires = {
        tuple(sorted((nodes[i], nodes[(i + step) % count]))) for i in range(count) for step in CHORDS if step % count
    }
    return TopologyFile(links=[TopologyLink(src=a, dst=b, bandwidth=bandwidth) for a, b in sorted(wires)])


def ring_job(index: int, tasks: int, seed: int) -> JobFile:
    """A ring of small tasks; sizes vary by seed so that no two plans are quite the same."""
    chance = random.Random(f"{seed}/{index}")
    return JobFile.model_validate(
        {
            "name": f"load-{index:05}",
            "tasks": [
                {
                    "name": "worker",
                    "replicas": tasks,
                    "command": ["true"],
                    "resources": {"cpu": f"{chance.randint(50, 150)}m", "memory": "64Mi"},
                }
            ],
            "flows": {"topology": "ring", "bandwidth": {"min": "1Mbit", "max": f"{chance.randint(5, 20)}Mbit"}},
        }
    )


@dataclass(frozen=True)
class Load:
    """``rate``: jobs offered per second; 0 submits as fast as the API takes them. ``run_s``: how long workers run."""

    nodes: int = 100
    jobs: int = 500
    tasks: int = 5
    rate: float = 0.0
    run_s: float = 10.0
    seed: int = 1


Moments = Mapping[str, Mapping[str, datetime]]  # job -> state -> when it was first reached


def waits(moments: Moments, start: str = "queued", end: str = "running") -> list[float]:
    """Seconds between two states, of every job that reached both."""
    return [(m[end] - m[start]).total_seconds() for m in moments.values() if start in m and end in m]


def stages(moments: Moments) -> dict[str, Any]:
    """How long each step on the way to running took."""
    return {f"{a} -> {b}": milliseconds(waits(moments, a, b)) for a, b in pairwise(STAGES)}


def throughput(moments: Moments) -> float:
    """Jobs brought to running per second, from the first submission to the last start."""
    started = [m["running"] for m in moments.values() if "running" in m]
    first = min(m["queued"] for m in moments.values())
    return len(started) / (max(started) - first).total_seconds()
