"""Worlds whose nodes are all linked with each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from manager_world import World, full_mesh
from sqlalchemy.engine import URL
from world_audit import audit


@contextmanager
def meshed_world(url: str | URL, *nodes: str, bandwidth: str = "100Mbit", **capacity: Any) -> Iterator[World]:
    """``bandwidth``: of each link. ``capacity``: of each node, as ``World.add_nodes`` takes it. What happened there is
    audited in the end."""
    made = World(url)
    made.add_nodes(*nodes, **capacity)
    made.put_topology(full_mesh(nodes, bandwidth))
    yield made
    audit(made)
    made.close()
