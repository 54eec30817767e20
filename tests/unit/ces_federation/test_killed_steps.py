"""The home of a job is killed at each step of the protocol between regions, and starts again some time later: no part
of a job starts that its home has not decided, the job runs once, and no room is lost."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from stepped_regions import HOLD_ENDS_S, HOME, REGIONS, Books, Regions
from world_audit import audit

from ces_common.states import JobState

SEEDS = int(os.environ.get("CES_HISTORIES", "2"))
FIRST = int(os.environ.get("CES_SEED", "0"))
PATIENCE_S = 300  # of the time that is told to pass
LONGEST_S = 3600  # a second for each play, on a machine that may be very busy


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Books]]:
    made = {name: Books(tmp_path_factory.mktemp("regions") / name) for name in REGIONS}
    yield made
    for each in made.values():
        each.close()


def finish(regions: Regions) -> None:
    while regions.state() is not JobState.SUCCEEDED and regions.loop.time() < PATIENCE_S:
        regions.flow(1.0)
    assert regions.state() is JobState.SUCCEEDED
    regions.flow(HOLD_ENDS_S + 1)
    regions.nothing_is_left()
    assert len(regions.ran) == 1
    for each in regions.books.values():
        audit(each.world)


STEPS = [
    "h-federation out region-not-taken",  # no other region was heard yet
    "h-manager in region-not-taken",
    "h-manager commits region-not-taken",
    "h-manager out region-not-taken",
    "h-federation in region-not-taken",
    "h-federation out bid",
    "h-federation in answer to bid",
    "h-federation out hold",
    "h-federation in answer to hold",
    "h-federation out region-decide",
    "h-manager in region-decide",
    "h-manager commits region-decide",
    "h-manager out region-decide",
    "h-federation in region-decide",
    "h-federation out commit",
    "h-federation in answer to commit",
    "h-federation out region-report",
    "h-manager in region-report",
    "h-manager commits region-report",
    "h-manager out region-report",
    "h-federation in region-report",
    "h-federation out status",
    "h-federation in answer to status",
]


def test_these_are_all_steps(books: dict[str, Books]) -> None:
    regions = Regions(books, random.Random(1))
    try:
        finish(regions)
        assert regions.steps == STEPS
    finally:
        regions.close()


def play(books: dict[str, Books], step: str, seed: int) -> None:
    """Whether the step is the first of its kind or a later one, whether its service dies alone or with all of its
    region, for how long, and what is lost on the wire is drawn."""
    chance = random.Random(f"{step} {seed}")
    regions = Regions(books, chance, room_at_home=chance.choice([None, None, 20.0]))
    left, down_s, loss = chance.choice([0, 0, 1]), chance.choice([0.1, 1.0, 5.0, 14.0, 16.0, 30.0]), chance.random() / 5
    parts = chance.choice([["manager"], ["federation"], ["manager", "federation"]])

    def at_step(process: str, passed: str) -> None:
        nonlocal left
        if passed != step or left < 0:
            return
        left -= 1
        if left < 0:
            for victim in {process, *(f"{HOME}-{part}" for part in parts)}:
                regions.die(victim)
                regions.start_later(victim, down_s)

    regions.at_step = at_step
    regions.post.fate = lambda: None if chance.random() < loss else chance.choice([0.0, 0.0, 0.3])
    try:
        finish(regions)
    finally:
        regions.close()


@pytest.mark.timeout(LONGEST_S)
@pytest.mark.parametrize("step", STEPS)
def test_a_home_that_is_killed_at_a_step_neither_starts_a_job_twice_nor_loses_room(
    books: dict[str, Books], step: str
) -> None:
    """``CES_HISTORIES`` times, from ``CES_SEED`` on."""
    for seed in range(FIRST, FIRST + SEEDS):
        try:
            play(books, step, seed)
        except AssertionError as error:
            raise AssertionError(f"CES_SEED={seed} CES_HISTORIES=1, {step!r}: {error}") from error
