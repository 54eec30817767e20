"""What a layout consists of."""

from __future__ import annotations

from dataclasses import dataclass

Wires = dict[tuple[int, int], float | None]
"""Directed links, node to node, with their speeds (Mbit/s; None: not known, left to who draws capacities)."""


@dataclass(frozen=True)
class Layout:
    """Names and wires; whoever makes an instance of it adds the capacities that are missing."""

    nodes: tuple[str, ...]
    wires: Wires | None  # None: drawn at random
    switches: frozenset[int] = frozenset()
    """Nodes that only pass traffic on."""
    left_out: tuple[str, ...] = ()
    """Nodes of a file that nothing connects with the rest."""


def both_ways(pairs: list[tuple[int, int]]) -> Wires:
    """Wires in both directions, in the order of their ends."""
    return dict.fromkeys(sorted({*pairs, *((b, a) for a, b in pairs)}))
