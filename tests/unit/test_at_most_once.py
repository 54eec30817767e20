"""A task runs at most once, whatever dies, waits, is lost or comes twice."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant
from run_auditor import judge
from world_actors import NODES, Actors, Faults

from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.reconcilers.workers import WorkerReconciler

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


class Histories(Actors):
    @invariant()
    def the_auditor_finds_nothing(self) -> None:
        self.check()


TestHistories = Histories.TestCase
TestHistories.settings = settings(stateful_step_count=18, suppress_health_check=SLOW)


HOLES = {
    "a lease begins again by any document": (StoredDocument, "check_reached", lambda *_: None),
    "what was prepared starts whatever has changed": (WorkerReconciler, "_still_starts", lambda *_: True),
}


@pytest.mark.parametrize("hole", [None, *HOLES])
def test_the_auditor_finds_a_hole_that_is_opened_again(hole: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two short histories that go well, unless there is a hole."""
    if hole is not None:
        monkeypatch.setattr(*HOLES[hole])
    found = []
    for befalls in (_a_site_returns_node_first, _a_node_is_cut_off):
        histories = Faults()
        histories.build((1.0, 1.0, 1.0))
        histories.submit(1, "stop", "gang", "scheduler-1", ["c"], 40, True)
        befalls(histories)
        found += judge(histories.world.journal, NODES)
        histories.sound = not found
        histories.teardown()
    assert bool(found) is (hole is not None), found


def _a_site_returns_node_first(histories: Faults) -> None:
    histories.away("site", 0, False, 50)


def _a_node_is_cut_off(histories: Faults) -> None:
    histories.cut_off("agent", 0, "both", "cut", 50)
