"""Networks to place jobs on: regular ones, random ones, and real ones from files."""

from ces_core.topologies.layout import SHAPES, layout_of
from ces_core.topologies.parts import Layout, Wires
from ces_core.topologies.shapes import random_wires

__all__ = ["SHAPES", "Layout", "Wires", "layout_of", "random_wires"]
