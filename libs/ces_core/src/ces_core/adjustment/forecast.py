"""Where a user will be, as far as its past tells: a chain of places, each left after a random time for one of those
that followed it before (a Markov chain, learned while it runs)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STEP_S = 10.0
"""Of time, in which the chain is followed."""


@dataclass(frozen=True)
class Track:
    """``spent_s``: place -> seconds there in all; ``left``: (from, to) -> how often."""

    spent_s: Mapping[str, float] = field(default_factory=dict)
    left: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def seen(self, place: str, seconds: float, then: str) -> Track:
        """With so long a stay, after which the user is at ``then``, which may be the same place."""
        spent = {**self.spent_s, place: self.spent_s.get(place, 0.0) + seconds}
        if then == place:
            return Track(spent, self.left)
        return Track(spent, {**self.left, (place, then): self.left.get((place, then), 0) + 1})

    def expected_s(self, here: str, horizon_s: float) -> dict[str, float]:
        """Place -> seconds expected there within the horizon, now at ``here``. A place that was never left keeps the
        user."""
        share, total = {here: 1.0}, dict[str, float]()
        left_s = horizon_s
        while left_s > 0:
            step_s = min(STEP_S, left_s)
            for place, likely in share.items():
                total[place] = total.get(place, 0.0) + likely * step_s
            share, left_s = self._later(share), left_s - step_s
        return total

    def _later(self, share: Mapping[str, float]) -> dict[str, float]:
        """The likelihood of each place one step later."""
        later = dict(share)
        for (place, then), times in self.left.items():
            goes = share.get(place, 0.0) * times / max(1.0, self.spent_s.get(place, 0.0) / STEP_S, self._leaves(place))
            later[place] = later.get(place, 0.0) - goes
            later[then] = later.get(then, 0.0) + goes
        return later

    def _leaves(self, place: str) -> int:
        return sum(times for (src, _), times in self.left.items() if src == place)
