"""Text of agents, engines and programs, as a database takes it."""

from __future__ import annotations


def storable(text: str, length: int | None = None) -> str:
    """Without the zero character, which Postgres refuses, and cut to ``length`` characters."""
    return text[:length].replace("\0", "\N{REPLACEMENT CHARACTER}")
