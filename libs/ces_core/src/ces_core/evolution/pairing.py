"""One logged problem decided by two solvers, and how the one's plan compares with the other's.

Both decide here and now, in one thread, with the same seed and time limit: what was logged was decided with other
budgets and beside other work. Which of the two begins is by chance, fixed for each decision. Plans are judged by the
independent checker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from ces_core.checker import check
from ces_core.evolution.confidence import CAP
from ces_core.evolution.decision_log import Logged
from ces_core.evolution.gate import Pairs
from ces_core.model.objective import metrics_of
from ces_core.model.problem import Problem
from ces_core.solver import Solver

CpuClock = Callable[[], float]


class Asked(NamedTuple):
    """A logged problem, also as the checker reads it."""

    problem: Problem
    instance: Mapping[str, Any]
    seed: int
    time_limit_s: float | None


class Decision(NamedTuple):
    """``objective``: None without a plan that keeps all rules; ``ms``: CPU time."""

    objective: float | None
    ms: float


@dataclass(frozen=True)
class Pair:
    """``gain``: by how much the one's objective is above the other's; where only one has a plan, :data:`CAP` either
    way. ``refused``: the other has a plan and the one has none. ``ms``: of the other and the one."""

    name: str
    gain: float
    refused: bool
    ms: tuple[float, float]


def compared(logged: Logged, other: Solver, one: Solver, cpu_s: CpuClock = time.thread_time) -> Pair | None:
    """None for a decision in which more than the objective counted. Raises DecisionLogError."""
    if logged.line["fragmentation_aware"]:
        return None
    asked = Asked(logged.problem, logged.instance, logged.line["seed"], logged.line["time_limit_s"])
    first = crc32(logged.name.encode()) % 2
    order = (other, one) if first == 0 else (one, other)
    found = [_decided(asked, solver, cpu_s) for solver in order]
    theirs, ours = found if first == 0 else reversed(found)
    return Pair(logged.name, _gain(theirs, ours), _refused(theirs, ours), (theirs.ms, ours.ms))


def _decided(asked: Asked, solver: Solver, cpu_s: CpuClock) -> Decision:
    """What the solver makes of the problem. One that fails has no plan."""
    problem, began = asked.problem, cpu_s()
    try:
        result = solver.solve(problem, seed=asked.seed, time_limit_s=asked.time_limit_s)
    except Exception:  # whatever a candidate's policy makes of it: the live one must not do so
        return Decision(None, (cpu_s() - began) * 1000)
    ms = (cpu_s() - began) * 1000
    if result.plan is None:
        return Decision(None, ms)
    answer, metric = result.to_dict(paths=problem.path_set), problem.path_metric
    if check(asked.instance, answer, basis=problem.basis, paths=problem.paths, path_metric=metric):
        return Decision(None, ms)
    return Decision(metrics_of(problem, result.plan).objective, ms)


def pairs_of(found: Iterable[Pair]) -> Pairs:
    """In arrays, as the gate reads them."""
    known = list(found)
    return Pairs(
        np.array([each.gain for each in known], dtype=np.float64),
        np.array([each.refused for each in known], dtype=np.bool_),
        np.array([each.ms for each in known], dtype=np.float64).reshape(-1, 2),
    )


def _gain(theirs: Decision, ours: Decision) -> float:
    if theirs.objective is None or ours.objective is None:
        return CAP * ((ours.objective is not None) - (theirs.objective is not None))
    return ours.objective - theirs.objective


def _refused(theirs: Decision, ours: Decision) -> bool:
    return theirs.objective is not None and ours.objective is None
