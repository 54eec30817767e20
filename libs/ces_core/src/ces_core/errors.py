"""What callers of the core may have to catch."""

from __future__ import annotations


class ProblemError(ValueError):
    """A problem that makes no sense. ``field`` says where, such as ``job.flows[2].min``."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class UnknownSolverError(LookupError):
    """No solver has this name."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"no solver is called {name!r}; known: {', '.join(known)}")
        self.name = name
        self.known = known


class PolicyError(ValueError):
    """A learned policy that cannot be used. The message says why, and what to do."""


class ValueFileError(ValueError):
    """A learned value cannot be used: the message says which file, and why."""
