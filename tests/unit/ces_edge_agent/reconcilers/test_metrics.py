"""What an agent counts of its reconciling."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from ces_common.messages.reports import WorkerState, WorkerStatus
from ces_edge_agent.ports import RuntimeUnavailable
from ces_edge_agent.reconcilers.metrics import note_workers, reconciling


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def worker(number: int, state: WorkerState) -> WorkerStatus:
    return WorkerStatus(allocation=f"w{number}", incarnation=1, state=state)


def test_a_look_is_timed_and_one_that_fails_is_counted_and_still_fails() -> None:
    looks, failed = value("ces_agent_reconcile_seconds_count", what="network"), "ces_agent_reconciles_failed_total"
    before = value(failed, what="network")
    with reconciling("network"):
        pass
    assert value(failed, what="network") == before
    with pytest.raises(RuntimeUnavailable), reconciling("network"):
        raise RuntimeUnavailable("no engine")
    assert value(failed, what="network") == before + 1
    assert value("ces_agent_reconcile_seconds_count", what="network") == looks + 2


def test_workers_are_counted_by_state_and_those_that_are_gone_no_more() -> None:
    note_workers([worker(1, "running"), worker(2, "running"), worker(3, "exited")])
    assert value("ces_agent_workers", state="running") == 2
    assert value("ces_agent_workers", state="exited") == 1
    note_workers([])
    assert value("ces_agent_workers", state="running") == 0
    assert REGISTRY.get_sample_value("ces_agent_workers", {"state": "exited"}) == 0
