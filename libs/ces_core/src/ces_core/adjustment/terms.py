"""What a caller knows and allows: facts about moving each task, and the terms on which a running job may be changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ces_core.model.bounds import amount, known, positive
from ces_core.model.errors import ProblemError
from ces_core.model.problem import Problem

USUAL_RESTART_S = 30.0
"""What stopping and starting a task takes until that was measured once."""
MOST_MOVES = 3
"""Tasks that one adjustment may move."""
SMALLEST_GAIN = 1e-6
"""A least gain below this could be rounding: plans that are as good would replace each other for ever."""


@dataclass(frozen=True)
class TaskFacts:
    """``restart_s``: learned time from stopping the task to its first answer elsewhere. ``requests``: a second, that
    pass through it; None: its rate, or 1 where it has none. ``cpu``: least and most that it may have, in the units of
    the problem; None: what it has."""

    restart_s: float = USUAL_RESTART_S
    requests: float | None = None
    cpu: tuple[float, float] | None = None


@dataclass(frozen=True)
class Terms:
    """``remaining_s``: how long the gain will last. ``least_gain``: of the objective, after the disturbance.
    ``budget``: requests that may still fall into moves this hour; ``reserve``: of these, what only a broken limit may
    use. ``cooling``: a task was moved so lately that only a broken limit justifies another move. ``most_moves``: of one
    adjustment."""

    remaining_s: float
    least_gain: float = 1e-3
    budget: float = math.inf
    reserve: float = 0.0
    cooling: bool = False
    most_moves: int = MOST_MOVES


def check_facts(problem: Problem, facts: Mapping[str, TaskFacts], terms: Terms) -> None:
    """Raises ProblemError, naming the field."""
    names = {task.name: task for task in problem.tasks}
    for name, fact in facts.items():
        known("adjust.tasks", "task", name, names)
        where = f"adjust.tasks.{name}"
        amount(f"{where}.restart_s", fact.restart_s)
        if fact.requests is not None:
            positive(f"{where}.requests", fact.requests)
        if fact.cpu is not None:
            low, high = positive(f"{where}.cpu[0]", fact.cpu[0]), positive(f"{where}.cpu[1]", fact.cpu[1])
            if not low <= names[name].cpu <= high:
                has = f"the task has {names[name].cpu:g}"
                raise ProblemError(f"{where}.cpu", f"must hold what the task has now: {has}, not {low:g}..{high:g}")
    positive("adjust.remaining_s", terms.remaining_s)
    if not terms.least_gain >= SMALLEST_GAIN:
        raise ProblemError("adjust.least_gain", f"must be {SMALLEST_GAIN:g} or more, is {terms.least_gain}")
    if not terms.budget >= 0:
        raise ProblemError("adjust.budget", f"must be a number of requests, 0 or more; is {terms.budget}")
    amount("adjust.reserve", terms.reserve)
    if not 0 <= terms.most_moves <= MOST_MOVES:
        raise ProblemError("adjust.most_moves", f"must be within 0..{MOST_MOVES}, is {terms.most_moves}")


def requests_of(problem: Problem, facts: Mapping[str, TaskFacts]) -> list[float]:
    """Requests a second that pass through each task."""
    found = []
    for task in problem.tasks:
        said = facts.get(task.name, TaskFacts()).requests
        rate = task.profile.rate if task.profile is not None else 0.0
        found.append(said if said is not None else rate or 1.0)
    return found
