"""What an audit says in the end: peaks, and what could not be judged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from audit_logs import INVENTORY, LOST, START, WHOLE, Fact, audit, done, numbered, started

from ces_client.audit import Inventory


class TestLateLogs:
    """The first events of a log are dropped for their age."""

    def verdict(self, first: int, facts: list[Fact] = WHOLE, inventory: Inventory = INVENTORY):
        return audit([event for event in numbered(facts) if event["sequence"] >= first], inventory)

    @pytest.mark.parametrize("first", range(len(START) + 1, len(WHOLE) + 1))
    def test_what_began_before_is_not_judged_and_that_is_said(self, first: int) -> None:
        verdict = self.verdict(first)
        assert verdict.findings == ()
        assert verdict.unjudged == (
            f"the log begins with event {first}; 1 jobs began before it: what began before is not judged",
        )

    def test_what_begins_in_it_is(self) -> None:
        inventory = replace(INVENTORY, nodes={"a": (500, 100, 0), "b": (1000, 100, 0)})
        verdict = self.verdict(len(START), inventory=inventory)
        assert [finding.text for finding in verdict.findings] == ["cpu of node a: 600 of 500 is overbooked"]
        again = [*START, *started(), *LOST, *started(2)]
        verdict = self.verdict(len(START) + 5, [*again, *done(2)], inventory)
        assert [finding.text for finding in verdict.findings] == ["cpu of node a: 600 of 500 is overbooked"]


def test_the_highest_use_is_told_with_its_time() -> None:
    verdict = audit(numbered(WHOLE), INVENTORY)
    assert (verdict.events, verdict.plans, verdict.jobs, verdict.held) == (len(WHOLE), 1, {"succeeded": 1}, 0)
    peaks = {peak.what: (peak.where, peak.used, peak.capacity, peak.event, peak.time) for peak in verdict.peaks}
    when = (6, "2026-01-01T00:00:06+00:00")
    assert peaks == {
        "cpu": ("a", 600, 1000, *when),
        "memory": ("a", 10, 100, *when),
        "link": ("a -> b", 50, 100, *when),
    }


def test_what_nobody_knows_is_not_judged_and_that_is_said() -> None:
    verdict = audit(numbered(WHOLE), Inventory())
    assert verdict.clean
    assert verdict.unjudged == (
        "links and media: the topology is not known",
        "CPU, memory and GPUs of 1 jobs: what their tasks asked for is not known",
    )
