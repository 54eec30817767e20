"""How fast a job is with how many workers, as far as anybody says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

EXPONENT: Final = 0.8


@dataclass(frozen=True)
class SpeedModel:
    """``hint``: size -> units per second. Other sizes follow from the nearest smaller one, n workers being n^0.8 times
    as fast as one; without any hint, one worker does one unit a second."""

    hint: Mapping[int, float] = field(default_factory=dict)

    def rate(self, size: int) -> float:
        """Units per second."""
        known = self.hint or {1: 1.0}
        nearest = max((each for each in known if each <= size), default=min(known))
        return known[nearest] * float((size / nearest) ** EXPONENT)
