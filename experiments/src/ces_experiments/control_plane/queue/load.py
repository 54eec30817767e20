"""The jobs that the benchmark of the queue submits. Pure."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from ces_common.jobfile import JobFile
from ces_common.messages.desired import DesiredWorker

TENANTS = ("flood", "north", "south", "west")  # half of the jobs come from the first
PRIORITIES = (20, 50, 80)
SIZES = (1, 1, 2, 2, 3, 4, 6, 8)  # tasks
LONGEST = 4.0  # times the mean
LINK = 100_000_000  # bit/s


@dataclass(frozen=True)
class QueueLoad:
    """``run_s``: how long jobs run on average, seconds. ``rate``: jobs submitted per second; 0: all at once."""

    nodes: int = 50
    jobs: int = 1000
    run_s: float = 8.0
    seed: int = 1
    rate: float = 0.0


def job(load: QueueLoad, index: int) -> JobFile:
    """A ring of tasks of which a node holds two to ten. Most jobs say truly how long they run; one in ten says half of
    it, one in ten nothing."""
    chance = random.Random(f"{load.seed}/{index}")
    seconds = min(chance.expovariate(1 / load.run_s), LONGEST * load.run_s)
    candour = chance.random()
    said = {} if candour < 0.1 else {"duration": f"{math.ceil(seconds * (0.5 if candour < 0.2 else 1)) or 1}s"}
    low = chance.randint(2, 20)
    return JobFile.model_validate(
        {
            "name": f"job-{index:05}",
            "tenant": TENANTS[0] if chance.random() < 0.5 else chance.choice(TENANTS[1:]),
            "priority": chance.choices(PRIORITIES, (1, 8, 1))[0],
            "tasks": [
                {
                    "name": "worker",
                    "replicas": chance.choice(SIZES),
                    "command": ["sleep", f"{seconds:.3f}"],
                    "resources": {"cpu": f"{chance.randrange(800, 4000, 100)}m", "memory": f"{chance.randint(1, 4)}Gi"},
                }
            ],
            "flows": {"topology": "ring", "bandwidth": {"min": f"{low}Mbit", "max": f"{low * 4}Mbit"}},
            **said,
        }
    )


def runs_s(worker: DesiredWorker) -> float:
    """How long a simulated worker runs: what its command says."""
    return float(worker.command[1])
