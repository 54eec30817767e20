"""What an agent makes of its environment."""

from __future__ import annotations

import os

import psutil
import pytest

from ces_edge_agent.settings import AgentSettings


def test_a_node_offers_all_that_it_has_unless_told_otherwise() -> None:
    settings = AgentSettings(node="n1")
    assert settings.node_cpu == (os.cpu_count() or 1) * 1000
    assert settings.node_memory == psutil.virtual_memory().total


def test_what_is_offered_may_be_written_as_people_write_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CES_NODE_CPU", "1.5")
    monkeypatch.setenv("CES_NODE_MEMORY", "2Gi")
    monkeypatch.setenv("CES_NODE_LABELS", "site=roof, floor=3")
    settings = AgentSettings(node="n1")
    assert (settings.node_cpu, settings.node_memory) == (1500, 2 * 2**30)
    assert settings.node_labels == {"site": "roof", "floor": "3"}
