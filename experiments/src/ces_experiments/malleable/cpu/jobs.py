"""The jobs of a run, drawn by its seed: when each arrives, how many workers it has, how much CPU time each is to spend.
The same job is submitted with an amount of CPU that CES chooses, or with a fixed one. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ces_common.jobfile import JobFile
from ces_common.quantities import format_cpu, parse_cpu
from ces_experiments.common.emulated import star
from ces_experiments.malleable.cpu import program
from ces_testbed.topology import Topology

HOST = 200  # millicores of a host: what four of them offer, small machines really have
SMALLEST = 10  # what a control group can be held to
LEAST, START, MOST = 50, 100, 200  # millicores of a worker whose amount CES chooses
LOAD = 0.8
"""The CPU time of all jobs, by what hosts offer while they arrive."""
WORK_S = (2.0, 6.0)  # CPU-seconds of a worker
GANGS = 1 / 3  # of the jobs have two workers
LINK = "100Mbit"
LATE_S = 120.0  # for starts and ends, of a run
RULES = ("even", "patient", "tapfinger")
"""By which the scheduler chooses with how much CPU jobs begin (CES_AMOUNTS)."""


@dataclass(frozen=True)
class CpuJob:
    """``arrives_s``: seconds after the first could have. ``work_s``: CPU-seconds of each worker."""

    name: str
    arrives_s: float
    workers: int
    work_s: float

    def file(self, way: str, name: str) -> JobFile:
        """``way``: one of the rules, or the amount of CPU that each worker has, as text."""
        amount = asked(way)
        task: dict[str, Any] = {
            "name": "w",
            "command": ["python", "-I", "-S", str(Path(program.__file__).resolve()), f"{self.work_s:.3f}"],
            "resources": {"cpu": format_cpu(amount), "memory": "32Mi"},
        }
        whole: dict[str, Any] = {"name": name, "duration": math.ceil(self.seconds(amount)) + 1, "tasks": [task]}
        if way in RULES:
            cpu = {"min": format_cpu(LEAST), "max": format_cpu(MOST)}
            workers = {"min": self.workers, "max": self.workers}
            whole["elastic"] = {"group": "w", "workers": workers, "cpu": cpu}
        else:
            task["replicas"] = self.workers
        return JobFile.model_validate(whole)

    def seconds(self, cpu: int) -> float:
        """Seconds that it takes where each worker has that many millicores."""
        return self.work_s * 1000 / cpu

    @property
    def tasks(self) -> list[str]:
        return [f"w-{i}" for i in range(self.workers)]


def asked(way: str) -> int:
    """The millicores that each worker asks for."""
    return START if way in RULES else parse_cpu(way)


def topology(nodes: int) -> Topology:
    return star(nodes, format_cpu(HOST), "1Gi", LINK)


def draw(seed: int, count: int, nodes: int) -> Sequence[CpuJob]:
    """In the order of their arrivals, which are those of a Poisson process."""
    chance = random.Random(f"{seed}/cpu")
    shapes = [(1 + (chance.random() < GANGS), chance.uniform(*WORK_S)) for _ in range(count)]
    gap_s = sum(workers * work_s for workers, work_s in shapes) / (nodes * HOST / 1000 * LOAD * count)
    found, at = [], 0.0
    for number, (workers, work_s) in enumerate(shapes):
        at += chance.expovariate(1 / gap_s)
        found.append(CpuJob(f"{number:03}", at, workers, work_s))
    return found


def until_s(jobs: Sequence[CpuJob], way: str) -> float:
    """How long a run of them may take: as long as if, once all have arrived, they ran one after the other."""
    least = LEAST if way in RULES else asked(way)
    return max(job.arrives_s for job in jobs) + sum(job.seconds(least) for job in jobs) + LATE_S


def setting() -> dict[str, Any]:
    """What does not depend on the seed, for the results."""
    return {
        "host": HOST,
        "least": LEAST,
        "start": START,
        "most": MOST,
        "load": LOAD,
        "work_s": WORK_S,
        "gangs": GANGS,
        "link": LINK,
    }
