"""What workers that ran tests/e2e/programs/traffic.py say of the traffic between them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from statistics import median
from typing import Any

from fault_cluster import FaultCluster

from ces_common.messages.api import JobView

TICKS = 4  # samples of a worker in a second
Samples = list[tuple[float, int]]  # seconds on the machine's clock, bytes so far


def said(cluster: FaultCluster, view: JobView) -> list[dict[str, Any]]:
    """All JSON lines that a job's workers printed, each with its task."""
    lines = []
    for task in view.placement:
        for line in cluster.client.jobs.logs(view.id, task.name):
            if line.startswith("{"):
                lines.append(json.loads(line))
    return lines


def arrived(lines: Iterable[dict[str, Any]]) -> dict[tuple[str, str], Samples]:
    """(sender, receiver) -> payload that came, of streams."""
    found: dict[tuple[str, str], Samples] = defaultdict(list)
    for line in lines:
        for source, count in line.get("received", {}).items():
            kind, _, sender = source.partition(" ")
            if kind == "tcp":
                found[sender, line["task"]].append((line["t"], count))
    return found


def rate(samples: Samples, since: float, until: float) -> float:
    """Mean rate in bit/s between two moments."""
    inside = [sample for sample in samples if since <= sample[0] <= until]
    (t0, b0), (t1, b1) = inside[0], inside[-1]
    return (b1 - b0) * 8 / (t1 - t0)


def usual_rate(samples: Samples, since: float, until: float) -> float:
    """Of the rates of all seconds the median: a machine that stands still for a moment takes from all flows at once,
    wherever they run, and what is promised is a rate of the network."""
    inside = [sample for sample in samples if since <= sample[0] <= until]
    return median(rate([first, last], first[0], last[0]) for first, last in pairwise(inside[::TICKS]))
