"""Whatever dies, is lost or is put back between three regions: a job is started in one place at most, nothing is held
twice or for long, and in the end all of it is released."""

from __future__ import annotations

import os
import random
import secrets
import sqlite3
from collections.abc import Iterator

import pytest
from stepped_regions import HOLD_ENDS_S, REGIONS, Books, Regions
from world_audit import audit

from ces_common.states import JOB_OVER, JobState

HISTORIES = int(os.environ.get("CES_HISTORIES", "5"))
SEED = os.environ.get("CES_SEED")
PATIENCE_S = 300  # of the time that is told to pass
LONGEST_S = 3600  # a second for each history, on a machine that may be very busy
PARTS = [f"{region}-{part}" for region in REGIONS for part in ("manager", "federation")]


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Books]]:
    made = {name: Books(tmp_path_factory.mktemp("regions") / name) for name in REGIONS}
    yield made
    for each in made.values():
        each.close()


def befall(regions: Regions, chance: random.Random, restored: str | None) -> None:
    """Some things in a row. ``restored``: the region whose database is put back, once; to be put back in two regions at
    once is more than the protocol withstands."""
    kept: list[sqlite3.Connection] = []
    for _ in range(chance.randint(3, 12)):
        regions.flow(chance.choice([0.1, 0.3, 0.5, 1.0, 3.0, 10.0]))
        if restored is not None:
            kept.append(regions.books[restored].copy())
        match chance.choice(["kill", "kill", "lose", "heal", "late", "restore"]):
            case "kill":
                victim = chance.choice(PARTS)
                regions.kill(victim)
                regions.start_later(victim, chance.choice([0.1, 1.0, 5.0, 16.0, 30.0]))
            case "lose":
                share = chance.choice([0.1, 0.5, 1.0])
                regions.post.fate = lambda share=share: None if chance.random() < share else 0.0
            case "heal":
                regions.post.fate = lambda: 0.0
            case "late":
                regions.post.fate = lambda: chance.choice([0.0, 0.2, 2.0, 8.0])
            case "restore" if restored is not None and regions.loop.time() > 3.0:
                regions.restore(restored, chance.choice(kept))
                restored = None
    regions.post.fate = lambda: 0.0


def play(books: dict[str, Books], seed: int, restored: str | None) -> None:
    chance = random.Random(seed)
    regions = Regions(books, chance, room_at_home=chance.choice([None, None, 0.0, 5.0, 20.0]))
    try:
        befall(regions, chance, restored)
        for part in PARTS:
            regions.start(part)
        while regions.state() not in JOB_OVER and regions.loop.time() < PATIENCE_S:
            regions.flow(1.0)
        state = regions.state()
        assert state in JOB_OVER, state
        regions.flow(HOLD_ENDS_S + 10)
        regions.nothing_is_left()
        if restored is None:
            assert (state, len(regions.ran)) == (JobState.SUCCEEDED, 1), (state, regions.ran)
        for each in books.values():
            audit(each.world)
    finally:
        regions.close()


@pytest.mark.timeout(LONGEST_S)
@pytest.mark.parametrize("restored", [None, *REGIONS])
def test_random_histories_of_regions(books: dict[str, Books], restored: str | None) -> None:
    first = secrets.randbits(32) if SEED is None else int(SEED)
    for seed in range(first, first + HISTORIES):
        try:
            play(books, seed, restored)
        except AssertionError as error:
            raise AssertionError(f"CES_SEED={seed} CES_HISTORIES=1, {restored} restored: {error}") from error
