"""A problem with other tasks in the places of its own. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ces_core.model.parts import Task
from ces_core.model.problem import Problem


def with_tasks(problem: Problem, tasks: Iterable[Task]) -> Problem:
    """The same job on the same cluster, with these tasks: the same names in the same order. Raises ProblemError."""
    return Problem.make(
        problem.cluster,
        tasks,
        problem.flows,
        name=problem.name,
        weights=problem.weights,
        basis=problem.basis,
        paths=problem.paths,
        path_metric=problem.path_metric,
        goals=problem.goals,
        units=problem.units,
    )
