"""A task runs at most once, whatever dies, waits, is lost or comes twice."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import invariant, run_state_machine_as_test
from world_actors import Actors, Faults

from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.reconcilers.workers import WorkerReconciler
from ces_manager.nodes import expiry

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


class Histories(Actors):
    @invariant()
    def the_auditor_finds_nothing(self) -> None:
        self.check()


TestHistories = Histories.TestCase
TestHistories.settings = settings(stateful_step_count=25, suppress_health_check=SLOW)


class ShortHistories(Faults):
    @invariant()
    def the_auditor_finds_nothing(self) -> None:
        self.check()


HOLES = {
    "a lease begins again by any document": (StoredDocument, "check_reached", lambda *_: None),
    "what was prepared starts whatever has changed": (WorkerReconciler, "_still_starts", lambda *_: True),
    "a node is given up before its lease ends": (expiry, "is_lost", lambda age_s, *_: age_s > 15),
}


@pytest.mark.parametrize("hole", HOLES)
def test_the_auditor_finds_a_hole_that_is_opened_again(hole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, instead = HOLES[hole]
    monkeypatch.setattr(owner, name, instead)
    found = settings(
        max_examples=200,
        stateful_step_count=12,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=SLOW,
    )
    with pytest.raises(AssertionError, match=r"runs twice|was given away"):
        run_state_machine_as_test(ShortHistories, settings=found)
