"""Small graphs of applications, drawn at random or written by hand."""

from __future__ import annotations

import numpy as np

from ces_core.decomposition.graph import Edge, Graph, Vertex


def random_graph(size: int, seed: int, *, chords: int | None = None, archs: int = 0) -> Graph:
    """A tree and some edges more (half as many as vertices if None). ``archs``: of how many some ask for one."""
    rng = np.random.default_rng(seed)
    vertices = tuple(
        Vertex(
            f"v{i}",
            cpu=float(rng.integers(100, 1000)),
            memory=float(rng.integers(1, 9)),
            arch=f"arch{rng.integers(archs)}" if archs and rng.random() < 0.5 else None,
            work_class=("general", "matrix")[int(rng.integers(2))],
            near=True if i == 0 else None,
            state=float(rng.integers(0, 5)),
        )
        for i in range(size)
    )
    pairs = {(int(rng.integers(i)), i) for i in range(1, size)}
    for _ in range(size // 2 if chords is None else chords):
        a, b = sorted(rng.choice(size, 2, replace=False).tolist()) if size > 1 else (0, 0)
        if a != b:
            pairs.add((a, b) if rng.random() < 0.5 else (b, a))
    edges = tuple(Edge(a, b, 1.0, float(rng.integers(1, 100))) for a, b in sorted(pairs))
    return Graph("random", vertices, edges)


def line(weights: list[float], cpu: float = 100.0) -> Graph:
    """Vertices in a line, with these amounts of traffic from each to the next."""
    vertices = tuple(Vertex(f"v{i}", cpu) for i in range(len(weights) + 1))
    return Graph("line", vertices, tuple(Edge(i, i + 1, weight / 2, weight) for i, weight in enumerate(weights)))
