"""What a simulation found: each job's fate, and the cluster over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ces_core.model.plan import Plan
from ces_core.model.problem import Cluster
from ces_sim.arrivals import TimedJob


@dataclass
class Fate:
    """What became of a job.

    ``left_s``: when it gave up, or was given up. ``load_imbalance`` is the cluster's right after the job's start.
    ``refusals``: the reasons why it had no place, as often as it was tried. ``stopped``: how often it had to make room
    for another and start over; ``started_s`` and what belongs to it are those of its last start.
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


FILLING = 0.2
"""The share of the arrivals after which averages over time begin: the cluster starts empty."""
OVER_TIME: Mapping[str, Callable[[Moment], float | None]] = {
    "cpu": lambda moment: moment.cpu,
    "bandwidth": lambda moment: moment.bandwidth,
    "load_imbalance": lambda moment: moment.load_imbalance,
    "bandwidth_satisfaction": lambda moment: moment.bandwidth_satisfaction,
    "composite": lambda moment: moment.composite,
}


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

    def filled(self, what: str) -> float | None:
        """The average of one of :data:`OVER_TIME` from when the cluster has filled to the last arrival."""
        arrivals = [fate.job.arrival_s for fate in self.fates]
        return self.average(OVER_TIME[what], arrivals[int(FILLING * len(arrivals))], arrivals[-1])

    def figures(self) -> dict[str, float | None]:
        """The share of the jobs that were accepted, their mean wait in seconds, and averages of the filled cluster;
        None where there is nothing to tell."""
        waits = [fate.waited_s for fate in self.accepted if fate.waited_s is not None]
        found = {"accepted": len(self.accepted) / len(self.fates), "wait_s": sum(waits) / len(waits) if waits else None}
        return found | {what: self.filled(what) for what in OVER_TIME}
