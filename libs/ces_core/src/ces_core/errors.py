"""What callers of the core may have to catch."""

from __future__ import annotations


class ProblemError(ValueError):
    """A problem that makes no sense. ``field`` says where, such as ``job.flows[2].min``."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class UnknownSolverError(LookupError):
    """No solver that can be used has this name. ``lacks``: what the one of this name misses, and the remedy."""

    def __init__(self, name: str, known: list[str], lacks: str | None = None) -> None:
        what = f"no solver is called {name!r}" if lacks is None else f"{name} {lacks}"
        super().__init__(f"{what}; known: {', '.join(known)}")
        self.name = name
        self.known = known


class PolicyError(ValueError):
    """A learned policy that cannot be used. The message says why, and what to do."""


class ValueFileError(ValueError):
    """A learned value cannot be used: the message says which file, and why."""
