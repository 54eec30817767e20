"""What moving a task disturbs: the requests that come while it is stopped, carried over and started."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ces_core.adjustment.running import RunningPlan
from ces_core.adjustment.terms import TaskFacts, requests_of
from ces_core.model.problem import FloatArray, Problem
from ces_core.network.path_table import PathTable


@dataclass(frozen=True)
class Disturbance:
    """``seconds``: (T, N), that a move of the task to the node takes; 0 where it is, infinite where its state cannot
    be carried to. ``requests``: (T,), a second, that pass through each task."""

    seconds: FloatArray
    requests: FloatArray

    @staticmethod
    def of(problem: Problem, running: RunningPlan, routes: PathTable, facts: Mapping[str, TaskFacts]) -> Disturbance:
        """``restart + 8 state / rate``: the rate is what the best path to the node has left beside the job's flows."""
        cluster = problem.cluster
        spare = np.maximum(0.0, cluster.bandwidth_free - running.load(problem))
        seconds = np.zeros(problem.allowed.shape)
        for t, here in enumerate(running.assignment):
            task = problem.tasks[t]
            bits = 8.0 * (task.profile.state if task.profile is not None else 0.0)
            restart = facts.get(task.name, TaskFacts()).restart_s
            for n in np.flatnonzero(problem.allowed[t]).tolist():
                if n != here:
                    rate = _widest(routes, here, n, spare) / problem.units.mbit * 1e6 if bits else 1.0
                    seconds[t, n] = restart + (bits / rate if rate > 0 else math.inf)
        return Disturbance(seconds, np.array(requests_of(problem, facts), dtype=np.float64))

    @property
    def table(self) -> FloatArray:
        """(T, N): requests that fall into the move of a task to a node."""
        return self.seconds * self.requests[:, None]

    def price(self, remaining_s: float) -> float:
        """Of one request, in units of the objective: all that the job serves in the remaining time are worth 1, and one
        that falls into a move is worth nothing."""
        return 1.0 / (float(self.requests.max()) * remaining_s)


def _widest(routes: PathTable, src: int, dst: int, spare: FloatArray) -> float:
    widths = [min(float(spare[r]) / times for r, times in path.loads) for path in routes.between(src, dst)]
    return max(widths, default=0.0)
