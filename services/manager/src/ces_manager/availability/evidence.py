"""What is concluded of a node or link that was there for so long, and away for so long. Pure.

In each minute it is there with the same unknown probability. Of that nothing is known at first: every value is equally
likely, Beta(1, 1). After ``up`` minutes there and ``down`` minutes away it has the distribution Beta(1 + up, 1 + down),
whose 5 % quantile is what may be relied on: with 95 % probability it is there at least that share of the time. Minutes
next to each other resemble each other, so little data says less than this makes of it. Older evidence counts less: half
after thirty days of looking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ces_common.messages.availability import Availability
from ces_manager.availability.beta import beta_quantile

MINUTE_S: Final = 60.0
QUANTILE: Final = 0.05
HALF_LIFE_S: Final = 30 * 86400.0
PRIOR: Final = 1.0
"""Minutes there, and minutes away, before anything was seen."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Seconds; older ones count less."""

    up_s: float = 0.0
    down_s: float = 0.0

    @property
    def seconds(self) -> float:
        return self.up_s + self.down_s

    def with_more(self, more: Evidence) -> Evidence:
        """And what was seen since."""
        kept = 0.5 ** (more.seconds / HALF_LIFE_S)
        return Evidence(self.up_s * kept + more.up_s, self.down_s * kept + more.down_s)

    def least(self) -> float:
        """The 5 % quantile."""
        return beta_quantile(QUANTILE, PRIOR + self.up_s / MINUTE_S, PRIOR + self.down_s / MINUTE_S)


def availability(evidence: Evidence, least: float) -> Availability:
    """``least``: its 5 % quantile."""
    up, down = PRIOR + evidence.up_s / MINUTE_S, PRIOR + evidence.down_s / MINUTE_S
    return Availability(least=least, mean=up / (up + down), n=int(evidence.seconds / MINUTE_S))
