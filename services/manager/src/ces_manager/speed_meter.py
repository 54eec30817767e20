"""How fast malleable jobs are, by the steps that their first tasks tell. Kept in memory; bounded, whatever agents say.

Times are differences on the clock of the one agent that saw the lines: what is sent late, or many at once after an
outage, changes nothing then. The manager's clock only says when it is time to look."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from ces_common.elastic import FASTEST, MOST_WORK, SLOWEST
from ces_common.messages.reports import Progress
from ces_common.messages.speeds import READ_S

WARM_UP_STEPS, WARM_UP_S = 10, 5.0  # of each start: what comes first, compiling and caching, is no measure
WINDOW_S: Final = 30.0
LEAST_S: Final = 5.0  # that a speed is measured over
LEAST_SAMPLES: Final = 4  # kept however old they are: a job may take longer for a step than the window
MOST_SAMPLES: Final = 256
KEEP_S: Final = 3600.0  # what says nothing more
LATEST_S: Final = 1e10  # on an agent's clock: 300 years, differences of which are still a time
MOST_STARTS: Final = 512  # of one node: the last to say something


@dataclass(frozen=True)
class Reading:
    """The last ``step`` of a start. ``rate``: its units/s, None until it can be said; ``span_s``: over which time.
    ``begun_s``: how long ago the start told of a step for the first time; None where that was said before."""

    allocation: str
    incarnation: int
    step: int
    rate: float | None
    span_s: float
    begun_s: float | None = None


@dataclass(slots=True)
class _Start:
    """What one start of a worker has told. ``since``, ``heard_at``, ``read_at``: on the manager's clock."""

    incarnation: int
    step: int
    first_step: int
    first_s: float
    last_s: float
    since: float
    heard_at: float
    begun: bool = False  # and that was said
    read_at: float | None = None
    read_step: int = -1
    samples: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))

    def add(self, seen_s: float, step: int) -> None:
        if seen_s <= self.last_s or step < self.step:
            return  # agents read a log again from its beginning when they start
        self.last_s, self.step = seen_s, step
        if step - self.first_step < WARM_UP_STEPS and seen_s - self.first_s < WARM_UP_S:
            return
        self.samples.append((seen_s, step))
        while len(self.samples) > LEAST_SAMPLES and self.samples[0][0] < seen_s - WINDOW_S:
            self.samples.popleft()

    @property
    def span_s(self) -> float:
        return self.samples[-1][0] - self.samples[0][0] if self.samples else 0.0

    def rate(self) -> float | None:
        """The median slope between samples that are half of all apart: a step is seen up to half a second late, so
        samples next to each other say little, and a pause or two in between do not count."""
        if len(self.samples) < LEAST_SAMPLES or self.span_s < LEAST_S:
            return None
        points, half = list(self.samples), len(self.samples) // 2
        pairs = zip(points, points[half:], strict=False)
        slope = median((late[1] - early[1]) / (late[0] - early[0]) for early, late in pairs)
        return slope if SLOWEST <= slope <= FASTEST else None


class SpeedMeter:
    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, _Start]] = {}  # node -> allocation -> its newest start

    def heard(self, progress: Progress, now: float) -> None:
        """Progress of a malleable job's first task, from the node that has it. ``now``: seconds, steady."""
        step, seen_s = progress.data.get("step"), progress.seen_s
        if seen_s is None or not 0 <= seen_s <= LATEST_S:
            return
        if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step <= MOST_WORK:
            return
        known = self._nodes.setdefault(progress.node, {})
        start = known.pop(progress.allocation, None)  # in the order in which they spoke last
        if start is None or start.incarnation < progress.incarnation:
            start = _Start(progress.incarnation, step, step, seen_s, seen_s, now, now)
        elif start.incarnation == progress.incarnation:
            start.add(seen_s, step)
        start.heard_at = now
        known[progress.allocation] = start
        if len(known) > MOST_STARTS:
            del known[next(iter(known))]

    def due(self, now: float) -> list[Reading]:
        """What is to be looked at: that a start has begun; of each that has gone on, once its speed can be said or half
        a minute is over, and each half a minute then. The same is not told twice."""
        found = []
        for node, known in list(self._nodes.items()):
            self._nodes[node] = kept = {name: each for name, each in known.items() if now - each.heard_at < KEEP_S}
            for allocation, start in kept.items():
                waited = now - (start.since if start.read_at is None else start.read_at) >= READ_S
                if start.step == start.read_step or not (waited or start.read_at is None):
                    continue
                rate, begun_s = start.rate(), None if start.begun else now - start.since
                if waited or rate is not None:
                    start.read_at, start.read_step = now, start.step
                elif start.begun:
                    continue
                start.begun = True
                found.append(Reading(allocation, start.incarnation, start.step, rate, start.span_s, begun_s))
        return found

    def step(self, node: str, allocation: str, incarnation: int) -> int | None:
        """The last step that this start has told; None where it has told none."""
        start = self._nodes.get(node, {}).get(allocation)
        return None if start is None or start.incarnation != incarnation else start.step

    def forget_node(self, node: str) -> None:
        self._nodes.pop(node, None)
