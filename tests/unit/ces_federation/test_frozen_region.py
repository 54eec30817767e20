"""A region that freezes, with all that it was about to say, delays no job by more than a second."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from stepped_regions import REGIONS, Books, Regions

from ces_common.states import JobState

FROZEN_S = 40.0
STEP_S = 0.05
WITHIN_S = 1.0 + 2 * STEP_S  # as finely as is looked


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Books]]:
    made = {name: Books(tmp_path_factory.mktemp("regions") / name) for name in REGIONS}
    yield made
    for each in made.values():
        each.close()


def placed_after(books: dict[str, Books], seed: int, frozen_at: float | None) -> float:
    """Seconds until a job is decided."""
    regions = Regions(books, random.Random(seed))
    try:
        frozen = frozen_at is None
        while regions.state() is not JobState.ELSEWHERE:
            assert regions.loop.time() < FROZEN_S, "it is never placed"
            regions.loop.flow(STEP_S)
            if not frozen and frozen_at is not None and regions.loop.time() >= frozen_at:
                frozen = True
                for part in ("federation", "manager"):
                    for way in ("in", "out"):
                        regions.post.set(f"p-{part}", way, "held")
        regions.check()
        return regions.loop.time()
    finally:
        regions.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_region_that_freezes_at_any_moment_delays_a_job_by_a_second_at_most(
    books: dict[str, Books], seed: int
) -> None:
    usual = placed_after(books, seed, None)
    moments = [round(usual - before, 2) for before in (2.0, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05) if usual > before]
    delays = {at: placed_after(books, seed, at) - usual for at in moments}
    assert max(delays.values()) <= WITHIN_S, delays
