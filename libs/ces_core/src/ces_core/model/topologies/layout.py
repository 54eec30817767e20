"""The nodes and wires of a network, by the name of a shape or from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ces_core.model.errors import ProblemError
from ces_core.model.topologies.graphml import SUFFIX, find, read
from ces_core.model.topologies.shapes import Layout, fat_tree, grid, random, ring

SHAPES: Mapping[str, Callable[[int], Layout]] = MappingProxyType(
    {"random": random, "grid": grid, "ring": ring, "fat-tree": fat_tree}
)
"""Name -> the layout with a given number of devices."""
YAML = (".yaml", ".yml")
NODES = 10
"""The default number of devices of a shape, as in the thesis's simulation."""


def layout_of(topology: str, nodes: int | None) -> Layout:
    """The layout of a shape with this number of devices, or of a GraphML file with its own nodes.

    Raises ProblemError, naming the field, for an unknown name, or a file that cannot be found or read.
    """
    if topology not in SHAPES and not topology.endswith(SUFFIX):
        known = f"must be {', '.join(SHAPES)} or a {SUFFIX} file, not {topology!r}"
        made = f"; docs/research.md makes a {SUFFIX} file of a topology file" if topology.endswith(YAML) else ""
        raise ProblemError("topology", known + made)
    if topology in SHAPES:
        if nodes is not None and nodes < 1:
            raise ProblemError("nodes", f"there must be at least one, not {nodes}")
        return SHAPES[topology](NODES if nodes is None else nodes)
    if nodes is not None:
        raise ProblemError("nodes", f"leave it out: the nodes are those of {topology}")
    return read(find(topology))
