"""Networks to place jobs on: regular, random, and real ones from files."""

from ces_core.model.topologies.layout import SHAPES, layout_of
from ces_core.model.topologies.shapes import Layout, Wires, random_wires

__all__ = ["SHAPES", "Layout", "Wires", "layout_of", "random_wires"]
