"""What regions know of each other, and since when: the federation's own board, fed when it is looked at.

In a run of hours 64 regions tell each other millions of summaries, of which few are ever looked at. So what a region
told last is worked out at the look: when it sent, by the service's rule, and what was so then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from math import ceil, inf

from ces_common.messages.regions import Summary
from ces_federation.board import Board
from ces_federation.service import AT_LEAST_S, EVERY_S


@dataclass(frozen=True)
class Telling:
    """When a region tells the others of itself: each ``every_s`` seconds, and ``on_change`` soon after one, as the
    service does. ``at_once``: the others know at every moment what is so, which no wire can do."""

    every_s: float = EVERY_S
    on_change: bool = True
    at_once: bool = False


class Teller:
    """One region. ``first_s``: when it tells for the first time."""

    def __init__(self, telling: Telling, first_s: float, summary: Summary) -> None:
        self._telling = telling
        self._sent = [first_s]  # further ones follow each ``every_s`` after each
        self._changed = [-inf]
        self._summaries = [summary]

    def note(self, now: float, summary: Summary) -> None:
        """The region is as the summary says from now on."""
        if self._changed[-1] == now:
            self._summaries[-1] = summary
        else:
            self._changed.append(now)
            self._summaries.append(summary)
        if self._telling.on_change and now > self._sent[-1]:
            self._sent.append(max(now, self._last(now) + AT_LEAST_S))

    def heard(self, by: float) -> tuple[Summary, float] | None:
        """What it had told last by then, and when it did; None where it had not told anything."""
        sent = by if self._telling.at_once else self._last(by)
        if sent > by:
            return None
        return self._summaries[bisect_right(self._changed, sent) - 1], sent

    def _last(self, by: float) -> float:
        """The last time by then at which it told; the first one of all if that comes later."""
        before = self._sent[max(0, bisect_right(self._sent, by) - 1)]
        return before + max(0.0, (by - before) // self._telling.every_s) * self._telling.every_s

    def times(self, until: float) -> int:
        """How often it has told one other region by then."""
        starts = [sent for sent in self._sent if sent <= until]
        ends = [*starts[1:], until]
        return sum(max(1, ceil((end - start) / self._telling.every_s)) for start, end in zip(starts, ends, strict=True))


class TimelyBoard(Board):
    """``wire_s``: how long what is told is on its way."""

    def __init__(self, region: str, block: IPv4Network, tellers: Mapping[str, Teller], wire_s: float) -> None:
        self._tellers = {name: teller for name, teller in tellers.items() if name != region}
        super().__init__(region, block, self._tellers)
        self._wire_s = wire_s

    def usable(self, now: float) -> dict[str, Summary]:
        for name, teller in self._tellers.items():
            heard = teller.heard(now - self._wire_s)
            if heard is not None:
                summary, sent = heard
                self.note(name, summary.model_copy(update={"made_at": sent}), sent + self._wire_s)
        return super().usable(now)
