"""A task runs at most once, whatever dies, waits, is lost or comes twice."""

from __future__ import annotations

import pytest
from fresh_histories import BACKEND
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import invariant, run_state_machine_as_test
from known_holes import HOLES, open_again
from run_auditor import judge
from world_actors import Actors
from world_faults import BEYOND_S, NODES, SLOW_JOB

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
STEPS = 4
ENOUGH = 200  # random histories in which a hole is found: a tenth of it is, wherever they begin


class Histories(Actors):
    @invariant()
    def the_auditor_finds_nothing(self) -> None:
        self.check()


TestHistories = Histories.TestCase
TestHistories.settings = settings(backend=BACKEND, stateful_step_count=STEPS, suppress_health_check=SLOW)


@pytest.mark.parametrize("hole", HOLES)
def test_random_histories_find_a_hole_that_is_opened_again(hole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ones each time, until the first in which something is wrong."""
    open_again(hole, monkeypatch)
    same = settings(
        TestHistories.settings, max_examples=ENOUGH, derandomize=True, database=None, phases=[Phase.generate]
    )
    with pytest.raises(AssertionError, match=HOLES[hole].found):
        run_state_machine_as_test(Histories, settings=same)


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
