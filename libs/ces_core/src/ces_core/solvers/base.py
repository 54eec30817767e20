"""What every solver is."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from ces_core.plan import Result
from ces_core.problem import Problem


class Solver(Protocol):
    """Answers one problem at a time; holds no state between problems."""

    @property
    def name(self) -> str:
        """The name people ask for it by."""

    @property
    def summary(self) -> str:
        """One line for ``ces solvers``."""

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        """A plan, or the reason why there is none. The same problem and seed give the same answer, unless the time
        limit (seconds; None: the solver's own bounds) cuts the search short."""


class Versioned(Protocol):
    """What is known of every policy, whatever it sees."""

    @property
    def version(self) -> str: ...


@runtime_checkable
class Learned(Solver, Protocol):
    """A solver that asks a policy."""

    @property
    def policy(self) -> Versioned | None:
        """The one that it was given, if any."""

    def using(self, file: Path | None) -> Self:
        """The same solver with the policy in ``file``, read now; None: with its usual one. Raises PolicyError."""


@runtime_checkable
class Foreseeing(Solver, Protocol):
    """A solver that can count what its plans leave for later jobs."""

    def foreseeing(self) -> Solver:
        """The same, which does."""


def foreseeing(solver: Solver) -> Solver:
    """The same solver, counting what its plans leave for later jobs, if it can."""
    return solver.foreseeing() if isinstance(solver, Foreseeing) else solver
