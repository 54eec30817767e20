"""Malleable jobs, moments and small drawn instances of them, for tests of policies."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hypothesis import strategies as st

from ces_core.malleable.model import MalleableJob, Running, SpeedProfile
from ces_core.malleable.policy import Moment

LINEAR = {1: 1.0, 2: 2.0, 4: 4.0}
"""Iterations/s as many as GPUs."""
CONCAVE = {1: 1.0, 2: 1.6, 4: 2.4}
FALLING = {1: 1.0, 2: 1.5, 4: 1.2}
"""Four GPUs are slower than two."""


def job(
    name: str, work: float, deadline_s: float = math.inf, rates: Mapping[int, float] | None = None, *,
    arrived_s: float = 0.0, asked: int = 1, memory: float = 1.0,
) -> MalleableJob:  # fmt: skip
    """With linear speeds unless others are given; sizes to choose from are those faster than all smaller ones."""
    measured = SpeedProfile.of(rates or LINEAR)
    return MalleableJob(name, arrived_s, work, deadline_s, measured.rising, asked, memory, measured)


def running(
    of: MalleableJob,
    size: int = 0,
    *,
    left: float | None = None,
    ran_s: float = 0.0,
    attained: float = 0.0,
    server: int = -1,
) -> Running:
    return Running(of, of.work if left is None else left, size, ran_s, attained, server)


def moment(*active: Running, gpus: int = 4, now_s: float = 0.0, servers: Mapping[int, float] | None = None) -> Moment:
    """With everybody that has neither GPUs nor a past as newly arrived."""
    new = frozenset(each.name for each in active if not each.size and not each.ran_s and each.server < 0)
    return Moment(now_s, gpus, active, new, servers or {})


profiles = st.lists(st.floats(0.05, 2.0), min_size=1, max_size=4).map(
    lambda factors: {
        2**i: math.prod(1 + each / 2 for each in factors[1 : i + 1]) * factors[0] for i in range(len(factors))
    }
)
"""Rates that rise with the size, up to 8 GPUs."""


@st.composite
def jobs(draw: st.DrawFn, most: int = 8) -> list[MalleableJob]:
    """Up to ``most`` that arrive within two minutes, some of them without hope."""
    found = []
    for i in range(draw(st.integers(1, most))):
        arrived = draw(st.integers(0, 120))
        work, due = draw(st.floats(1.0, 300.0)), draw(st.integers(10, 600))
        asked = draw(st.sampled_from([1, 2, 4, 8]))
        found.append(job(f"j{i}", work, arrived + due, draw(profiles), arrived_s=arrived, asked=asked))
    return found
