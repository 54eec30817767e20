"""What CPU time tasks take for each step: the steps that workers tell, beside the CPU time that their agents count.
Kept in memory; bounded, whatever agents say.

A worker tells of a step up to half a second late, and its agent counts the CPU time when it sends a heartbeat. So one
pair is off by as much as lies in between, and what is told is the slope between pairs that are far apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from ces_common.elastic import MOST_WORK
from ces_common.messages.reports import Heartbeat, Progress
from ces_common.messages.work import Span

WARM_UP_STEPS, WARM_UP_S = 10, 5.0  # of each start: compiling and caching is no measure
LEAST_STEPS, LEAST_S = 10, 10.0  # that CPU time is measured over
PARTS: Final = 4
"""Into which what was seen is divided, to tell how much it varies."""
MOST_PAIRS: Final = 64  # of one start; beyond, every second one goes
MOST_STARTS: Final = 512  # of one node: the last to say something
ENDED: Final = timedelta(seconds=15)
"""After which a task of which no heartbeat tells has ended, or its node is silent."""
KEEP: Final = timedelta(hours=1)
LATEST_S: Final = 1e10  # on an agent's clock, as of CPU time
STEPS: Final = ("step", "round")
"""What workers call the number of steps done, in the order in which it is looked for."""


class Pair(NamedTuple):
    """A step, when its agent saw it, and the CPU time that was used by then, in seconds."""

    step: int
    seen_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Pace:
    """What a step took, in ms: of CPU time, and from one to the next. ``steps``: over which that was seen."""

    steps: int
    cpu: Span
    step: float


@dataclass(slots=True)
class _Start:
    """``since``: the first line that this start told. ``fresh``: a step was told since the last pair. ``beat_at``: when
    a heartbeat told of it last, on the manager's clock; ``heard_at``: when anything did."""

    incarnation: int
    step: int
    seen_s: float
    since: tuple[int, float]
    heard_at: datetime
    beat_at: datetime
    fresh: bool = False
    pairs: list[Pair] = field(default_factory=list)

    def tells(self, step: int, seen_s: float) -> None:
        if step > self.step and seen_s > self.seen_s:  # agents read a log again from its beginning when they start
            self.step, self.seen_s, self.fresh = step, seen_s, True

    def counts(self, cpu_s: float) -> None:
        if self.pairs and cpu_s < self.pairs[-1].cpu_s:
            self.pairs.clear()  # of another start
        first, first_s = self.since
        if not self.fresh or (self.step - first < WARM_UP_STEPS and self.seen_s - first_s < WARM_UP_S):
            return
        self.fresh = False
        self.pairs.append(Pair(self.step, self.seen_s, cpu_s))
        if len(self.pairs) > MOST_PAIRS:
            del self.pairs[1:-1:2]


def pace_of(pairs: Sequence[Pair]) -> Pace | None:
    """None as long as too little was seen. Pure."""
    if len(pairs) < 2:
        return None
    first, last = pairs[0], pairs[-1]
    if last.step - first.step < LEAST_STEPS or last.seen_s - first.seen_s < LEAST_S:
        return None
    parts = [pairs[number * (len(pairs) - 1) // PARTS] for number in range(PARTS + 1)]
    each = [_cpu_ms(early, late) for early, late in pairwise(parts) if late.step > early.step]
    ms = _cpu_ms(first, last)
    return Pace(
        steps=last.step - first.step,
        cpu=Span(ms=ms, low=min(ms, *each), high=max(ms, *each)),
        step=(last.seen_s - first.seen_s) * 1e3 / (last.step - first.step),
    )


def _cpu_ms(early: Pair, late: Pair) -> float:
    return (late.cpu_s - early.cpu_s) * 1e3 / (late.step - early.step)


class WorkMeter:
    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, _Start]] = {}  # node -> allocation -> its newest start

    def progressed(self, progress: Progress, now: datetime) -> None:
        """Of an allocation that is the node's own."""
        step, seen_s = _step_of(progress), progress.seen_s
        if step is None or seen_s is None or not 0 <= seen_s <= LATEST_S:
            return
        known = self._nodes.setdefault(progress.node, {})
        start = known.pop(progress.allocation, None)  # in the order in which they spoke last
        if start is None or start.incarnation < progress.incarnation:
            start = _Start(progress.incarnation, step, seen_s, (step, seen_s), now, now)
        elif start.incarnation == progress.incarnation:
            start.tells(step, seen_s)
        start.heard_at = now
        known[progress.allocation] = start
        if len(known) > MOST_STARTS:
            del known[next(iter(known))]

    def heard(self, beat: Heartbeat, now: datetime) -> None:
        known = self._nodes.get(beat.node)
        if not known:
            return
        for usage in beat.workers:
            start = known.get(usage.allocation)
            if start is None:
                continue
            start.beat_at = start.heard_at = now
            if usage.cpu_s and usage.cpu_s <= LATEST_S:  # one that is ending may be told to have used nothing
                start.counts(usage.cpu_s)

    def pace(self, node: str, allocation: str) -> Pace | None:
        start = self._nodes.get(node, {}).get(allocation)
        return None if start is None else pace_of(start.pairs)

    def ended(self, now: datetime) -> dict[str, Pace]:
        """Allocation -> its pace, of those that no heartbeat tells of any more. Those too short to say are left out."""
        found = {}
        for known in list(self._nodes.values()):
            for allocation, start in list(known.items()):
                if now - start.beat_at >= ENDED and (pace := pace_of(start.pairs)) is not None:
                    found[allocation] = pace
        return found

    def forget(self, allocations: Sequence[str]) -> None:
        for known in self._nodes.values():
            for allocation in allocations:
                known.pop(allocation, None)

    def forget_node(self, node: str) -> None:
        self._nodes.pop(node, None)

    def forget_old(self, now: datetime) -> None:
        kept = {
            node: {name: start for name, start in list(known.items()) if now - start.heard_at < KEEP}
            for node, known in list(self._nodes.items())
        }
        self._nodes = {node: known for node, known in kept.items() if known}


def _step_of(progress: Progress) -> int | None:
    value = next((progress.data[name] for name in STEPS if name in progress.data), None)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_WORK:
        return None
    return value
