"""Where nodes lie on a map: where somebody put them, else by their wires; the same cluster always lies the same."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec

Point = tuple[float, float]
GOLDEN = math.pi * (3 - math.sqrt(5))  # turns by which neighbours of one node do not cover each other


def can_place() -> bool:
    """Whether what places nodes by their wires is installed."""
    return all(find_spec(name) for name in ("networkx", "scipy"))


def place(
    names: Sequence[str], wires: Collection[tuple[str, str]], kept: Mapping[str, Sequence[float]]
) -> dict[str, Point]:
    """A point of each node, to the right and down. ``kept``: where operators put some; the others lie near those that
    they have wires to. Without any they lie by their wires, or on a circle where :func:`can_place` is false."""
    placed = {name: (float(kept[name][0]), float(kept[name][1])) for name in names if name in kept}
    if placed:
        return _beside(names, wires, placed)
    return _by_wires(names, wires) if can_place() else _circle(names)


def _circle(names: Sequence[str]) -> dict[str, Point]:
    turn = 2 * math.pi / max(len(names), 1)
    return {name: (math.cos(turn * index), math.sin(turn * index)) for index, name in enumerate(names)}


def _by_wires(names: Sequence[str], wires: Collection[tuple[str, str]]) -> dict[str, Point]:
    """As far from each other as there are wires between them, as far as a plane allows (Kamada and Kawai 1989)."""
    import networkx as nx

    if len(names) < 2:
        return dict.fromkeys(names, (0.0, 0.0))
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from(sorted(wires))
    near = {name: dict(found) for name, found in nx.all_pairs_shortest_path_length(graph)}
    apart = 1 + max(max(found.values()) for found in near.values())  # between parts that no wire joins
    distance = {a: {b: near[a].get(b, apart) for b in names} for a in names}
    found = {name: (float(x), float(y)) for name, (x, y) in nx.kamada_kawai_layout(graph, dist=distance).items()}
    wide, tall = (max(axis) - min(axis) for axis in zip(*found.values(), strict=True))
    return found if wide >= tall else {name: (y, x) for name, (x, y) in found.items()}  # sheets are wider than tall


def _beside(names: Sequence[str], wires: Collection[tuple[str, str]], placed: Mapping[str, Point]) -> dict[str, Point]:
    points = dict(placed)
    across, down = zip(*points.values(), strict=True)
    reach = max(max(across) - min(across), max(down) - min(down)) / 3 or 1.0
    neighbours: dict[str, list[str]] = {name: [] for name in names}
    for a, b in sorted(wires):
        neighbours[a].append(b)
        neighbours[b].append(a)
    left = [name for name in names if name not in points]
    while left:
        # The one with the most neighbours that lie somewhere comes first; one without any lies beside all others.
        name = max(left, key=lambda each: (sum(other in points for other in neighbours[each]), -left.index(each)))
        near = [points[other] for other in neighbours[name] if other in points] or list(points.values())
        turn = GOLDEN * len(points)
        x, y = (sum(part) / len(near) for part in zip(*near, strict=True))
        points[name] = (x + reach * math.cos(turn), y + reach * math.sin(turn))
        left.remove(name)
    return points
