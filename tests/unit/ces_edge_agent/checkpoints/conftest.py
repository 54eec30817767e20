"""Two agents, one of which copies and fetches what the other has packed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from checkpoint_nodes import Node

from ces_edge_agent.checkpoints import beginnings, fetcher


@pytest.fixture
async def first(tmp_path: Path) -> AsyncIterator[Node]:
    made = Node("first", tmp_path)
    yield made
    made.inputs.close()


@pytest.fixture
async def second(tmp_path: Path) -> AsyncIterator[Node]:
    made = Node("second", tmp_path)
    yield made
    made.inputs.close()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beginnings, "PATIENCE_S", 0.0)
    monkeypatch.setattr(beginnings, "LONGEST_PAUSE_S", 0.0)
    monkeypatch.setattr(fetcher, "LOOK_S", 0.01)
