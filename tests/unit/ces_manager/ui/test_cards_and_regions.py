"""The shares of a GPU card, and what regions tell of themselves, as the dashboard says them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ui_modules import Modules

pytestmark = pytest.mark.needs("browser")
GIB = 2**30
HELD = [{"job": "1", "name": "a", "share": 250, "memory": GIB}, {"job": "2", "name": "b", "share": 100, "memory": GIB}]


def shares(ui: Modules, **card: Any) -> dict[str, Any]:
    asked = {"id": "x", "memory": 16 * GIB, "allocated": 0, "memory_allocated": 0, "holders": []} | card
    found: dict[str, Any] = ui.run(
        "const { sharesOf } = await load('parts/node_cards'); return sharesOf(given.card);", card=asked
    )
    return found


def test_what_nobody_may_see_is_one_piece_beside_what_is_free(ui: Modules) -> None:
    found = shares(ui, allocated=600, memory_allocated=5 * GIB, holders=HELD)
    assert found["jobs"] == HELD
    assert (found["others"]["share"], found["others"]["memory"]) == (250, 3 * GIB)
    assert (found["free"]["share"], found["free"]["memory"]) == (400, 11 * GIB)


def test_a_manager_that_tells_no_holders_is_understood(ui: Modules) -> None:
    found = shares(ui, allocated=1000, memory_allocated=16 * GIB, holders=None)
    assert (found["jobs"], found["others"]["share"], found["free"]["share"]) == ([], 1000, 0)


@settings(max_examples=20)
@given(st.lists(st.integers(1, 300), max_size=3), st.integers(0, 100))
def test_the_pieces_of_a_card_are_the_whole_card(ui: Modules, mine: list[int], others: int) -> None:
    holders = [{"job": str(n), "name": "x", "share": share, "memory": share} for n, share in enumerate(mine)]
    found = shares(ui, allocated=sum(mine) + others, memory_allocated=sum(mine) + others, holders=holders)
    pieces = [*(each["share"] for each in found["jobs"]), found["others"]["share"], found["free"]["share"]]
    assert sum(pieces) == 1000


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("roomText({ model: 'T4', rooms: [2, 0, 1, 0, 0, 3] })", "T4: 3 whole, 1 ≥ 250m, 2 full"),
        ("roomText({ model: '', rooms: [0, 1, 0, 0, 0, 0] })", "model unknown: 1 < 250m"),
        ("queueText({ queued: 0, wait_s: 0 })", "nobody waits"),
        ("queueText({ queued: 1, wait_s: null })", "1 job waits; nobody knows until when"),
        ("queueText({ queued: 3, wait_s: 90 })", "3 jobs wait; the last starts in about 1m30s"),
        ("largestText({ largest: { cpu: 1500, memory: 1073741824, gpu: 0 } })", "1.5 cores, 1 GiB"),
        ("borderText({ total: 1e8, free: 4e7, up: true })", "40 Mbit/s of 100 Mbit/s free"),
        ("borderText({ total: 1e8, free: 4e7, up: false })", "down"),
        ("borderOf({ summary: { borders: [{ region: 'b', up: true }] } }, 'b').up", True),
        ("borderOf({ summary: { borders: [] } }, 'b') ?? null", None),
        ("borderOf({}, 'b') ?? null", None),
    ],
)
def test_what_regions_tell_is_said_in_words(ui: Modules, code: str, said: object) -> None:
    names = "roomText, queueText, largestText, borderText, borderOf"
    assert ui.run(f"const {{ {names} }} = await load('regions/text'); return {code};") == said


def test_jobs_that_regions_hold_are_counted_as_long_as_they_go_on(ui: Modules) -> None:
    def hold(region: str, state: str, job_state: str) -> dict[str, str]:
        return {"region": region, "state": state, "job_state": job_state}

    holds = {
        "here": [hold("b", "held", "planned"), hold("b", "released", "cancelled"), hold("c", "committed", "running")],
        "there": [hold("b", "committed", "elsewhere"), hold("b", "committed", "succeeded")],
    }
    count = "const { countsOf } = await load('regions/holds'); return countsOf(given.holds, 'b');"
    assert ui.run(count, holds=holds) == {"here": 1, "there": 1}
    assert ui.run(count, holds=None) == {"here": 0, "there": 0}
