"""A task runs at most once, whatever dies, waits, is lost or comes twice."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant
from world_actors import WorldActors


class Histories(WorldActors):
    @invariant()
    def the_auditor_finds_nothing(self) -> None:
        self.check()


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=100, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
