"""A manager's database with a full mesh of nodes, audited when the test is over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from manager_world import World, full_mesh, sqlite_url
from world_audit import audit


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """Of the module's NODES; of a, b and c where it names none."""
    nodes = getattr(request.module, "NODES", ["a", "b", "c"])
    made = World(sqlite_url(tmp_path))
    made.add_nodes(*nodes)
    made.put_topology(full_mesh(nodes))
    yield made
    audit(made)
    made.close()
