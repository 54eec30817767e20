"""A task runs at most once, whatever dies, waits, is lost or comes twice."""

from __future__ import annotations

import os
import secrets

import pytest
from fresh_histories import BACKEND
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import invariant, run_state_machine_as_test
from known_holes import HOLES, open_again
from run_auditor import judge
from world_actors import Actors
from world_faults import BEYOND_S, NODES, SLOW_JOB

HISTORIES = int(os.environ.get("CES_HISTORIES", "50"))
SEED = os.environ.get("CES_SEED")  # the number of the first history; a random one where it is not given
AT_ONCE = 25  # histories that are drawn from one seed, so that several workers share them out
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
DRAWN = settings(backend=BACKEND, stateful_step_count=4, max_examples=AT_ONCE, suppress_health_check=SLOW)
FILE = "tests/unit/test_at_most_once.py"
LONGEST_S = 1800  # some seconds of CPU each, on a machine that may be very busy
ENOUGH = 200  # random histories in which a hole is found: a tenth of it is, wherever they begin


class Histories(Actors):
    @invariant()
    def the_auditor_finds_nothing(self) -> None:
        self.check()


@pytest.mark.timeout(LONGEST_S)
@pytest.mark.parametrize("first", range(0, HISTORIES, AT_ONCE))
def test_random_histories(first: int) -> None:
    number = secrets.randbits(32) if SEED is None else int(SEED) + first
    print(f"drawn again by: CES_SEED={number} CES_HISTORIES={AT_ONCE} pytest -k test_random_histories {FILE}")
    run_state_machine_as_test(seed(number)(Histories), settings=DRAWN)


@pytest.mark.timeout(LONGEST_S)
@pytest.mark.parametrize("hole", HOLES)
def test_random_histories_find_a_hole_that_is_opened_again(hole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ones each time, until the first in which something is wrong."""
    open_again(hole, monkeypatch)
    until_found = settings(DRAWN, max_examples=ENOUGH, database=None, phases=[Phase.generate])
    number = HOLES[hole].seed if SEED is None else int(SEED)
    with pytest.raises(AssertionError, match=HOLES[hole].found):
        run_state_machine_as_test(seed(number)(Histories), settings=until_found)


@pytest.mark.parametrize(
    "hole", [None, "a lease begins again by any document", "what was prepared starts whatever has changed"]
)
def test_two_short_histories_go_well_unless_there_is_a_hole(hole: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if hole is not None:
        open_again(hole, monkeypatch)
    found = []
    for befalls in (_a_site_returns_node_first, _a_node_is_cut_off):
        histories = Histories()
        histories.build((1.0, 1.0, 1.0), [])
        befalls(histories)
        found += judge(histories.world.journal, NODES)
        histories.sound = not found
        histories.teardown()
    assert bool(found) is (hole is not None), found


def _a_site_returns_node_first(histories: Histories) -> None:
    histories.lose(SLOW_JOB, "site", 0, "kill", BEYOND_S, odd=False)


def _a_node_is_cut_off(histories: Histories) -> None:
    histories.cut_off([SLOW_JOB], "agent", 0, "both", "cut", BEYOND_S)
