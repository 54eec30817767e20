"""Numbers that change while a run goes on."""

from __future__ import annotations


def linear(pair: tuple[float, float], progress: float) -> float:
    """From the first of ``pair`` to the second, in a straight line by ``progress`` (0..1)."""
    return pair[0] + (pair[1] - pair[0]) * min(max(progress, 0.0), 1.0)
