"""What each choice comes to: the future is played to its end by a rule, once for each choice.

With the jobs that will really come this is clairvoyant, and an estimate of what there is to gain at all; with jobs that
are made up it is what a policy could know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ces_core.model.problem import BoolArray, FloatArray
from ces_core.search.longrun import FORGONE
from ces_rl.envs.streams.proposals import Proposals, attitudes, propose
from ces_rl.envs.streams.stream import Stream

Worth = Callable[[Stream], float]
"""What a stream has come to so far."""


def take(stream: Stream, found: Proposals, choice: int) -> None:
    """Starts the job with that plan; waits where there are no more plans."""
    if choice == len(found.there):
        stream.wait()
    else:
        stream.start(found.node_load[choice], found.link_load[choice], float(found.satisfaction[choice]))


def play_by_rule(stream: Stream) -> None:
    """To the end as ``search-longrun`` decides: by the first attitude, and a job waits that would be less satisfied by
    more than it may forgo."""
    while stream.job is not None:
        found = propose(stream.problem, attitudes()[:1])
        poor = float(found.satisfaction[0]) < stream.kinds[stream.job].alone - FORGONE
        take(stream, found, 1 if not found.there[0] or (poor and stream.may_wait) else 0)


@dataclass(frozen=True)
class Lookahead:
    """``jobs``: how many arrivals a future has. ``futures``: how many are made up; 0: the true one is known."""

    jobs: int
    futures: int
    worth: Worth = lambda stream: stream.served

    def judge(self, stream: Stream, found: Proposals, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
        """(choices,) what each allowed choice earns from now on, on average; -inf for others. All choices meet the same
        futures."""
        total = np.where(allowed, 0.0, -np.inf)
        before, count = self.worth(stream), max(self.futures, 1)
        for _ in range(count):
            future = stream.imagined(self.jobs, rng) if self.futures else stream.foreseen(self.jobs)
            for choice in np.flatnonzero(allowed).tolist():
                tried = future.copy()
                take(tried, found, choice)
                play_by_rule(tried)
                total[choice] += (self.worth(tried) - before) / count
        return total
