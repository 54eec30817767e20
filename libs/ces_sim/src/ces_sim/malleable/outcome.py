"""What became of the jobs of one simulation."""

from __future__ import annotations

from dataclasses import dataclass

from ces_core.malleable.model import MalleableJob


@dataclass(slots=True)
class JobFate:
    """``ended_s``: None if it was refused or never ended. ``resizes``: changes of size or place after its first start;
    ``crossings``: those of them between cloud and edge. ``cost_s``: seconds without work because of starts and changes.
    ``gpu_s``: GPU-seconds held in the cloud. ``edge_s``: seconds on edge servers."""

    job: MalleableJob
    started_s: float | None = None
    ended_s: float | None = None
    refused: bool = False
    resizes: int = 0
    crossings: int = 0
    cost_s: float = 0.0
    gpu_s: float = 0.0
    edge_s: float = 0.0

    @property
    def on_time(self) -> bool:
        return self.ended_s is not None and self.ended_s <= self.job.deadline_s + 1e-6


@dataclass(frozen=True)
class ElasticOutcome:
    """``fates`` in the order of arrival."""

    fates: list[JobFate]

    @property
    def satisfied(self) -> float:
        """Share of submitted jobs with a deadline that ended in time."""
        due = [fate for fate in self.fates if fate.job.deadline_s < float("inf")]
        return sum(fate.on_time for fate in due) / len(due) if due else 1.0

    def figures(self) -> dict[str, float]:
        """``satisfied``; shares ``refused`` and ``late``; for each job that ran, on average: ``migrations``,
        ``crossings`` and ``cost_s``; ``edge_share``: of all seconds that jobs ran, those on edge servers."""
        jobs, ran = len(self.fates), [fate for fate in self.fates if fate.started_s is not None]
        each = max(len(ran), 1)
        refused = sum(fate.refused for fate in self.fates)
        edge = sum(fate.edge_s for fate in ran)
        cloud = sum(fate.gpu_s for fate in ran)
        return {
            "satisfied": self.satisfied,
            "refused": refused / jobs,
            "late": sum(not fate.on_time and not fate.refused for fate in self.fates) / jobs,
            "migrations": sum(fate.resizes for fate in ran) / each,
            "crossings": sum(fate.crossings for fate in ran) / each,
            "cost_s": sum(fate.cost_s for fate in ran) / each,
            "edge_share": edge / (edge + cloud) if edge + cloud else 0.0,
        }


def feasible(jobs: list[MalleableJob]) -> float:
    """An upper bound on the share of satisfied jobs: those that would be in time alone, at their best size and at no
    cost."""
    due = [job for job in jobs if job.deadline_s < float("inf")]
    return sum(job.earliest_end_s <= job.deadline_s for job in due) / len(due) if due else 1.0
