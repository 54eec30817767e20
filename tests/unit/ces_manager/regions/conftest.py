"""Two regions' databases: the home of a job, and the one where it runs. Both are audited when the test is over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from manager_world import World, full_mesh, sqlite_url
from world_audit import audit


def region(folder: Path) -> Iterator[World]:
    folder.mkdir()
    made = World(sqlite_url(folder))
    made.add_nodes("a", "b", "c")
    made.put_topology(full_mesh(["a", "b", "c"]))
    yield made
    audit(made)
    made.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[World]:
    yield from region(tmp_path / "home")


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[World]:
    yield from region(tmp_path / "owner")
