"""What a run decides on: regions, the same nodes and links as one cluster, and jobs that each have a home. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ces_common.jobfile import ANY_REGION, JobFile
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.parts import Link, Node
from ces_core.model.problem import Cluster
from ces_sim.arrivals import TimedJob, poisson
from ces_sim.offered import paced
from ces_sim.rounds import derived_seed

Homes = Literal["even", "uneven"]
BUSY, THEIRS = 0.25, 0.5
"""With uneven homes, this share of the regions submits that share of the jobs."""
MILLICORES, BYTES, BITS = 1000, 2**20, 10**6
"""What one unit of a drawn cluster stands for: a core, a MiB, a Mbit/s."""
BORDER = (100.0, 1000.0)
"""Capacity of a border link in the regime ``thesis``, as of any other link."""


@dataclass(frozen=True)
class Shape:
    """``nodes``: of each region. ``jobs``: of each region, on average. ``load``: what jobs ask for over time, by what
    is free."""

    regions: int
    nodes: int
    jobs: int
    load: float
    homes: Homes
    regime: str
    tasks: tuple[int, ...]
    duration_s: float


@dataclass(frozen=True)
class HomedJob:
    """``file``: what its home's people would have written. It may run in any region."""

    timed: TimedJob
    home: str
    file: JobFile


@dataclass(frozen=True)
class World:
    """``regions``: each by itself; ``whole``: all of them as one cluster, with the links between regions; ``parts``:
    without these, so that no job can be split."""

    regions: Mapping[str, Cluster]
    whole: Cluster
    parts: Cluster
    jobs: Sequence[HomedJob]


def draw(shape: Shape, seed: int) -> World:
    """The same seed draws the same regions, and the same jobs, whatever is decided on them."""
    names = [f"r{number + 1}" for number in range(shape.regions)]
    drawn = {
        name: _parts(name, random_instance(shape.regime, derived_seed(seed, 0, number), nodes=shape.nodes, tasks=1))
        for number, name in enumerate(names)
    }
    nodes = [node for own, _ in drawn.values() for node in own]
    links = [link for _, own in drawn.values() for link in own]
    rng = np.random.default_rng(derived_seed(seed, 1))
    border = [link for one, other in neighbours(names) for link in _wire(drawn[one][0], drawn[other][0], shape, rng)]
    whole = Cluster.make(nodes, [*links, *border])
    jobs = poisson(
        shape.jobs * shape.regions, 1.0, shape.duration_s, shape.tasks, derived_seed(seed, 2), regime=shape.regime
    )
    homes = rng.choice(names, size=len(jobs), p=shares(shape.regions, shape.homes))
    return World(
        regions={name: Cluster.make(*own) for name, own in drawn.items()},
        whole=whole,
        parts=Cluster.make(nodes, links),
        jobs=[
            HomedJob(job, str(home), job_file(job))
            for job, home in zip(paced(jobs, whole, shape.load), homes, strict=True)
        ],
    )


def neighbours(names: Sequence[str]) -> list[tuple[str, str]]:
    """Which regions have a wire between them: each and the next one of a circle, and those across."""
    count, half = len(names), len(names) // 2
    pairs = {frozenset((i, (i + step) % count)) for i in range(count) for step in (1, half)}
    return [(names[min(pair)], names[max(pair)]) for pair in sorted(pairs, key=sorted) if len(pair) == 2]


def shares(regions: int, homes: Homes) -> list[float]:
    """The share of the jobs that each region submits."""
    if homes == "even" or regions == 1:
        return [1 / regions] * regions
    busy = max(1, round(BUSY * regions))
    return [THEIRS / busy] * busy + [(1 - THEIRS) / (regions - busy)] * (regions - busy)


def job_file(job: TimedJob) -> JobFile:
    tasks = [
        {
            "name": task.name,
            "command": ["python", "train.py"],
            "resources": {"cpu": f"{round(task.cpu * MILLICORES)}m", "memory": round(task.memory * BYTES)},
        }
        for task in job.tasks
    ]
    edges = [
        {
            "src": f"{flow.src}-0",
            "dst": f"{flow.dst}-0",
            "bandwidth": {"min": round(flow.min * BITS), "max": round(flow.max * BITS)},
        }
        for flow in job.flows
    ]
    return JobFile.model_validate(
        {"name": job.name, "regions": [ANY_REGION], "tasks": tasks, "flows": {"edges": edges}}
    )


def _parts(region: str, instance: Mapping[str, Any]) -> tuple[list[Node], list[Link]]:
    nodes = [Node(**each | {"name": f"{region}-{each['name']}"}) for each in instance["nodes"]]
    links = [
        Link(f"{region}-{each['src']}", f"{region}-{each['dst']}", each["bandwidth"]) for each in instance["links"]
    ]
    return nodes, links


def _wire(one: Sequence[Node], other: Sequence[Node], shape: Shape, rng: np.random.Generator) -> list[Link]:
    """Between a node of each, drawn, with a capacity for each direction."""
    a, b = one[int(rng.integers(len(one)))].name, other[int(rng.integers(len(other)))].name
    there, back = rng.uniform(*BORDER, 2) * REGIMES[shape.regime]
    return [Link(a, b, float(there)), Link(b, a, float(back))]
