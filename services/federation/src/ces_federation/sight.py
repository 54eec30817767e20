"""What a learned policy sees when it chooses a region: of each region what its summary tells, and of the job. Pure.

All are ratios, or counts on a scale of their own, clipped, so that neither units nor sizes of regions matter. Summaries
say nothing of nodes and of links within a region, so none of this does.
"""

from __future__ import annotations

import hashlib
from math import log1p

from ces_common.jobfile import JobFile
from ces_common.messages.regions import ROOMS, Summary
from ces_federation.choice import Need, smallest

REGION = (
    "free cpu", "free memory", "cpu left", "memory left", "cpu asked of what is free", "memory asked of what is free",
    "cpu of its freest node", "memory of its freest node", "nodes for the largest task", "places for mean tasks",
    "jobs that wait", "nodes",
)  # fmt: skip
"""The first four as shares of what there is; then of what the job or its largest task asks for; the ninth as a share of
the nodes, the tenth by the number of tasks, both by the lower edges of the histogram's buckets."""
JOB = ("tasks", "largest task", "flows", "least bandwidth")
"""The second as a share of the job's cpu; the fourth of a mean flow."""
MOST = 4.0  # of a ratio
MEGABIT = 1_000_000


def schema_hash() -> str:
    """Of what is seen, in its order."""
    return hashlib.sha256(repr((REGION, JOB)).encode()).hexdigest()[:16]


def about_job(file: JobFile) -> list[float]:
    """The numbers that :data:`JOB` names. Of a malleable job at its smallest size."""
    sized = smallest(file)
    tasks, flows = sized.expand_tasks(), sized.expand_flows()
    cpu = [task.cpu for task in tasks]
    least = sum(flow.min for flow in flows) / max(len(flows), 1)
    return [
        _part(len(tasks), 8),
        max(cpu) / max(sum(cpu), 1),
        _part(len(flows), 16),
        min(log1p(least / MEGABIT) / 5, MOST),
    ]


def about_region(need: Need, file: JobFile, summary: Summary) -> list[float]:
    """The numbers that :data:`REGION` names. ``need``: the job's."""
    tasks = sum(group.replicas for group in smallest(file).tasks)
    free, total, largest = summary.free, summary.total, summary.largest
    mean = need.whole.cpu / max(tasks, 1)
    return [
        _part(free.cpu, total.cpu),
        _part(free.memory, total.memory),
        _part(free.cpu - need.whole.cpu, total.cpu),
        _part(free.memory - need.whole.memory, total.memory),
        _part(need.whole.cpu, free.cpu),
        _part(need.whole.memory, free.memory),
        _part(largest.cpu, need.largest.cpu),
        _part(largest.memory, need.largest.memory),
        sum(count for count, cores in _buckets(summary) if cores * 1000 >= need.largest.cpu) / max(summary.nodes, 1),
        _part(sum(count * (cores * 1000 // max(mean, 1)) for count, cores in _buckets(summary)), tasks),
        min(log1p(summary.queued) / 5, MOST),
        min(log1p(summary.nodes) / 5, MOST),
    ]


def _buckets(summary: Summary) -> list[tuple[int, int]]:
    """How many nodes have at least so many cores free; those without one whole core are left out."""
    return list(zip(summary.rooms[1:], ROOMS, strict=False))


def _part(amount: float, of: float) -> float:
    return max(-MOST, min(amount / max(of, 1), MOST))
