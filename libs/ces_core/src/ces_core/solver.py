"""The protocols that solvers implement."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from ces_core.model.errors import ProblemError
from ces_core.model.plan import Result
from ces_core.model.problem import Problem

GOALS = "deadlines, reliability, energy, limits on load, groups or a choice of sources"


class Solver(Protocol):
    """Answers one problem at a time; holds no state between problems."""

    @property
    def name(self) -> str:
        """The name by which users select it."""

    @property
    def summary(self) -> str:
        """One line for ``ces solvers``."""

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        """A plan, or the reason why there is none. The same problem and seed give the same answer, unless the time
        limit (seconds; None: the solver's own bounds) cuts the search short."""


class Versioned(Protocol):
    """What every policy has, whatever its input."""

    @property
    def version(self) -> str: ...


@runtime_checkable
class Learned(Solver, Protocol):
    """A solver that asks a policy."""

    @property
    def policy(self) -> Versioned | None:
        """The policy it was given, if any."""

    def using(self, file: Path | None) -> Self:
        """The same solver with the policy in ``file``, read now; None: with its usual one. Raises PolicyError."""


@runtime_checkable
class SupportsLookahead(Solver, Protocol):
    """A solver that can count what its plans leave for later jobs."""

    def with_lookahead(self) -> Solver:
        """The same, which does."""


def with_lookahead(solver: Solver) -> Solver:
    """The same solver, counting what its plans leave for later jobs, if it can."""
    return solver.with_lookahead() if isinstance(solver, SupportsLookahead) else solver


def refuse_goals(solver: str, problem: Problem) -> None:
    """Raises ProblemError for a job with goals, which a solver that does not know them would pass over in silence."""
    if problem.has_goals:
        raise ProblemError("job", f"{solver} does not know {GOALS}: ask search, or exact")
