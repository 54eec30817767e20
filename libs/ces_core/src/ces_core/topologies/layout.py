"""A network's nodes and wires by the name of its shape, or from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ces_core.errors import ProblemError
from ces_core.topologies.graphml import SUFFIX, find, read
from ces_core.topologies.parts import Layout
from ces_core.topologies.shapes import fat_tree, grid, random, ring

SHAPES: Mapping[str, Callable[[int], Layout]] = MappingProxyType(
    {"random": random, "grid": grid, "ring": ring, "fat-tree": fat_tree}
)
"""Name -> the layout with so many devices."""
NODES = 10
"""Devices of a shape where nothing else is asked for; the thesis's simulation."""


def layout_of(topology: str, nodes: int | None) -> Layout:
    """The layout of a shape with so many devices, or of a GraphML file, which brings its nodes along.

    Raises ProblemError, naming the field, for a name that is neither, and for files that cannot be found or read.
    """
    if topology not in SHAPES and not topology.endswith(SUFFIX):
        raise ProblemError("topology", f"must be {', '.join(SHAPES)} or a {SUFFIX} file, not {topology!r}")
    if topology in SHAPES:
        if nodes is not None and nodes < 1:
            raise ProblemError("nodes", f"there must be at least one, not {nodes}")
        return SHAPES[topology](NODES if nodes is None else nodes)
    if nodes is not None:
        raise ProblemError("nodes", f"leave it out: the nodes are those of {topology}")
    return read(find(topology))
