"""The errors that callers of the core may have to catch."""

from __future__ import annotations

from difflib import get_close_matches


class ProblemError(ValueError):
    """An invalid problem. ``field`` says where, such as ``job.flows[2].min``."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class UnknownSolverError(LookupError):
    """No usable solver has this name. ``lacks``: what the solver of this name is missing, and the remedy."""

    def __init__(self, name: str, known: list[str], lacks: str | None = None) -> None:
        what = f"{name} {lacks}"
        if lacks is None:
            near = get_close_matches(name, known, 1)
            what = f"no solver is called {name!r}" + (f", perhaps {near[0]!r} is meant" if near else "")
        super().__init__(f"{what}; known: {', '.join(known)}")
        self.name = name
        self.known = known


class BrokenSolverError(UnknownSolverError):
    """The solver of this name comes from another package and cannot be used. ``reason`` says why, and the remedy
    where there is one."""

    def __init__(self, name: str, reason: str) -> None:
        LookupError.__init__(self, f"the solver {name!r} is broken: {reason}")
        self.name = name
        self.known = []
        self.reason = reason


class QueuePolicyError(LookupError):
    """No usable queue policy has this name. The message says why, and what to do."""


class PolicyError(ValueError):
    """A learned policy that cannot be used. The message says why, and what to do."""


class ValueFileError(ValueError):
    """A learned value cannot be used: the message says which file, and why."""
