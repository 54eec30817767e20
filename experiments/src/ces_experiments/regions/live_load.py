"""The load on real regions, and what it came to. Pure."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ces_common.jobfile import ANY_REGION, JobFile
from ces_experiments.common.spread import milliseconds
from ces_experiments.control_plane.load import Moments
from ces_experiments.control_plane.simulated_agents import NodeShape
from ces_experiments.regions.drawn import shares

CORES = 4
NODE = NodeShape(cpu=CORES * 1000, memory=16 * 2**30)
LEFT = "elsewhere"


@dataclass(frozen=True)
class Load:
    """``nodes``: of each region. ``rate``: jobs submitted per second, by all homes together. ``run_s``: how long each
    job runs. A quarter of the regions submits half of the jobs."""

    regions: int = 4
    nodes: int = 6
    jobs: int = 500
    rate: float = 2.0
    tasks: int = 3
    run_s: float = 10.0
    seed: int = 1

    @property
    def offered(self) -> float:
        """Cores asked for over time, by all that there are."""
        return self.rate * self.run_s * self.tasks / (self.regions * self.nodes * CORES)


def jobs(load: Load) -> list[tuple[int, JobFile]]:
    """Each with the number of its home, in the order in which they are submitted."""
    chance = random.Random(load.seed)
    homes = chance.choices(range(load.regions), shares(load.regions, "uneven"), k=load.jobs)
    return [(home, _job(number, load)) for number, home in enumerate(homes)]


def _job(number: int, load: Load) -> JobFile:
    """A ring of tasks with a core each."""
    task = {
        "name": "worker",
        "replicas": load.tasks,
        "command": ["true"],
        "resources": {"cpu": "1", "memory": "64Mi"},
    }
    flows = {"topology": "ring", "bandwidth": {"min": "1Mbit", "max": "10Mbit"}} if load.tasks > 1 else {}
    return JobFile.model_validate(
        {"name": f"away-{number:05}", "regions": [ANY_REGION], "tasks": [task], "flows": flows}
    )


@dataclass(frozen=True)
class Ran:
    """One job. ``events``: when it reached each state at home. ``started``: when its workers ran, wherever."""

    home: str
    region: str
    state: str
    events: Mapping[str, datetime]
    started: datetime | None

    @property
    def waited_s(self) -> float | None:
        """From its submission until its workers ran."""
        return None if self.started is None else (self.started - self.events["queued"]).total_seconds()

    @property
    def decided_s(self) -> float | None:
        """From its submission until its home wrote down that it runs elsewhere."""
        return (self.events[LEFT] - self.events["queued"]).total_seconds() if LEFT in self.events else None

    @property
    def begun_s(self) -> float | None:
        """From then until its workers ran."""
        return (self.started - self.events[LEFT]).total_seconds() if LEFT in self.events and self.started else None


def ran(home: str, job: Mapping[str, Any], moments: Moments) -> Ran:
    """From what its home's API and events say."""
    started = datetime.fromisoformat(job["started_at"]) if job.get("started_at") else None
    return Ran(home, job.get("region") or home, job["state"], moments[job["id"]], started)


def summary(found: Sequence[Ran]) -> dict[str, Any]:
    """``matrix``: home -> region -> jobs that ran there."""
    at_home = [job for job in found if job.region == job.home]
    away = [job for job in found if job.region != job.home]
    matrix: dict[str, Counter[str]] = {job.home: Counter() for job in found}
    for job in found:
        matrix[job.home][job.region] += 1
    return {
        "states": dict(Counter(job.state for job in found)),
        "started": sum(job.started is not None for job in found),
        "elsewhere": len(away),
        "at_home_ms": milliseconds(job.waited_s for job in at_home if job.waited_s is not None),
        "elsewhere_ms": milliseconds(job.waited_s for job in away if job.waited_s is not None),
        "decided_ms": milliseconds(job.decided_s for job in away if job.decided_s is not None),
        "begun_ms": milliseconds(job.begun_s for job in away if job.begun_s is not None),
        "matrix": {home: dict(where) for home, where in sorted(matrix.items())},
    }
