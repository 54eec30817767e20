"""What a simulation found: each job's fate, and the cluster over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ces_core.plan import Plan
from ces_core.problem import Cluster
from ces_core.simulator.workload import TimedJob


@dataclass
class Fate:
    """What became of a job.

    ``left_s``: when it gave up, or was given up. ``load_imbalance`` is the cluster's right after the job's start.
    ``refusals``: the reasons why it had no place, as often as it was tried. ``stopped``: how often it had to make room
    for another and begin anew; what is said of its start is said of the last.
    """

    job: TimedJob
    started_s: float | None = None
    ended_s: float | None = None
    left_s: float | None = None
    plan: Plan | None = None
    load_imbalance: float | None = None
    bandwidth_satisfaction: float | None = None
    refusals: list[str] = field(default_factory=list)
    stopped: int = 0

    @property
    def waited_s(self) -> float | None:
        return None if self.started_s is None else self.started_s - self.job.arrival_s


@dataclass(frozen=True)
class Moment:
    """The cluster from ``time_s`` to the next moment. Utilisations are used by capacity, over all nodes or links."""

    time_s: float
    running: int
    waiting: int
    cpu: float
    memory: float
    bandwidth: float
    load_imbalance: float
    bandwidth_satisfaction: float | None  # mean over the running jobs; None where none runs
    composite: float | None


@dataclass(frozen=True)
class Outcome:
    """``fates`` by arrival; ``moments`` in order, at most one per time; ``cluster`` as it was left."""

    solver: str
    policy: str
    fates: Sequence[Fate]
    moments: Sequence[Moment]
    decision_wall_s: Sequence[float]
    cluster: Cluster

    @property
    def accepted(self) -> list[Fate]:
        return [fate for fate in self.fates if fate.started_s is not None]

    @property
    def blocked_by(self) -> dict[str, int]:
        """Last reason -> how many jobs never got a place for it, most frequent first."""
        lost = Counter(["never-tried", *fate.refusals][-1] for fate in self.fates if fate.started_s is None)
        return dict(lost.most_common())

    def average(self, value: Callable[[Moment], float | None], start_s: float, end_s: float) -> float | None:
        """Mean of a value over time within [start_s, end_s], over the times that have it; None where none has."""
        total = weight = 0.0
        last = [Moment(end_s, 0, 0, 0.0, 0.0, 0.0, 0.0, None, None)]
        for moment, following in pairwise([*self.moments, *last]):
            span = min(following.time_s, end_s) - max(moment.time_s, start_s)
            found = value(moment)
            if span > 0 and found is not None:
                total += found * span
                weight += span
        return total / weight if weight else None
